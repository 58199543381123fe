-- Ends a hold in favour of whoever waits, and queues a new hold of the same client behind them, in one command.
--
-- KEYS  lock, queue, waiters, clock
-- ARGV  1 old hold   2 its token   3 new hold   4 lease ms   5 patience ms   6 local passes   7 channel   8 entry
--       (5 to 8 as in acquire)
-- RETURNS { "owner", now µs, token, ttl ms, 1 = was mine already }         for the new hold
--         { "held", now µs, holder's ttl ms, position }                    the new hold is queued
--         { "released" | "gone" | "taken", now µs, last token of the clock }   for the old one; nothing was queued
-- INVARIANTS  A copy that comes late finds the old hold ended and queues nothing. The new hold is queued before
--         anybody is granted, so the queue is the only place that says who is next. The ZREM is the write that a full
--         Redis does not refuse (R5).

-- @include shared

local old, oldToken, new, lease, patience = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local passes, channel, entry = tonumber(ARGV[6]), ARGV[7], ARGV[8]

local owner = redis.call("HMGET", lockKey, "hold", "token", "since")
if owner[1] == new then
  local ttl = raise(lease)
  return { "owner", nowMicros, tonumber(owner[2]), ttl, 1 }
end
local position = redis.call("ZRANK", queueKey, new)
if position then
  return { "held", nowMicros, redis.call("PTTL", lockKey), position }
end
if owner[1] ~= old then
  return ended(oldToken, owner)
end

redis.call("ZREM", queueKey, new)
enqueue(new, patience, entry)
local granted, ttl = grantNext(owner[3], new)
if granted == new then
  return { "owner", nowMicros, own(new, channel, lease, passes, owner[3]), lease, 0 }
end
return { "held", nowMicros, ttl, redis.call("ZRANK", queueKey, new) }
