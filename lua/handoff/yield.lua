-- Ends a hold in favour of whoever waits, and queues a new hold of the same client behind them, in one command.
--
-- KEYS  lock, queue, waiters, clock
-- ARGV  1 old hold   2 new hold   3 "<old token> <lease> <patience>"   4 entry   (as in acquire)
-- RETURNS { "owner", now µs, token, ttl ms, 1 = was mine already }         for the new hold
--         { "held", now µs, holder's ttl ms, position }                    the new hold is queued
--         { "released" | "gone" | "taken", last token of the clock }       for the old one; nothing was queued
-- INVARIANTS  A copy that comes late finds the old hold ended and queues nothing. The new hold is queued before
--         anybody is granted, so the queue is the only place that says who is next. The ZREM is the write that a full
--         Redis does not refuse (R5).
-- MODEL  `yield_` in proof/server.pml

-- @include shared

tellTime()
local old, new, entry = ARGV[1], ARGV[2], ARGV[4]
local oldToken, lease, patience = string.match(ARGV[3], "^(%d+) (%d+) (%d+)$")
local passes, channel = string.match(entry, "^%d+ (%d+) [01] (.*)$")

local holder, token, since = owner()
if holder == new then
  return { "owner", nowMicros, token, raise(lease), 1 }
end
local position = call("ZRANK", queueKey, new)
if position then
  return { "held", nowMicros, call("PTTL", lockKey), position }
end
if holder ~= old then
  return ended(oldToken, token, since)
end

call("ZREM", queueKey, new)
enqueue(new, patience, entry)
local granted, ttl = grantNext(since, new)
local mine = granted == new and own(new, channel, lease, passes, since)
if mine then
  return { "owner", nowMicros, mine, lease, 0 }
elseif usedUp then
  -- Nobody can be given a token: the old hold ends, as it should, and its client asks anew.
  call("ZREM", queueKey, new)
  call("HDEL", waitersKey, new)
  call("DEL", lockKey)
  return { "released", 0 }
end
return { "held", nowMicros, ttl, call("ZRANK", queueKey, new) }
