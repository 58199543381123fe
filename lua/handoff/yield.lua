-- Ends a hold for the first live waiter, and queues a new hold of the same client after all waiters,
-- in one command.
--
-- KEYS  lock, queue, clients, clock
-- ARGV  1 old      the hold that ends
--       2 token    its token
--       3 hold     the new one, as in acquire, like all that follows
--       4 lease ms   5 passes   6 entry   7 told
-- RETURNS { OWNER, at µs, token, waits 0|1 }                      for the new hold, as acquire
--         { MINE, at µs, token, ttl ms, waits 0|1, told 0..2 }
--         { HELD, at µs, ttl ms, place -1.. }
--         RELEASED                                                for the old one, as release; nothing
--         TAKEN                                                   was queued
--         { GONE, clock 0.. }
-- INVARIANTS  A late copy finds the old hold ended and queues nothing. The new hold is queued before
--         any grant, so the queue alone decides which hold is next. The ZREM is the write that a full
--         Redis does not refuse.
-- MODEL  `yield_` in proof/server.pml

-- @include start
local hold, lease, entry = ARGV[3], ARGV[4], ARGV[6]
local value = call("GET", lock)
local holder = value and sub(value, 38)
-- @include time
if holder == hold then
  -- @include mine
end
local place = call("ZRANK", queue, entry)
if place then
  return { HELD, now, call("PTTL", lock), place }
end
if holder ~= ARGV[1] then
  -- @include ended
end

call("ZREM", queue, entry)
-- @include shared
call("ZADD", queue, text, entry)
-- @include behind
local granted, ttl = grantNext(call("ZPOPMIN", queue), sub(value, 21, 36), hold)
local token = granted == hold and own(hold, lease, ARGV[5], sub(value, 21, 36), ARGV[7])
if token then
  return { OWNER, now, token, call("EXISTS", queue) }
elseif usedUp then
  -- There is no token to give: the old hold ends, as it should, and its client asks again.
  call("ZREM", queue, entry)
  call("DEL", lock)
  return RELEASED
end
return { HELD, now, ttl, call("ZRANK", queue, entry) or -1 }
