-- Takes a hold out of everything: out of the queue, and when it has become the owner meanwhile, out of the lock.
--
-- KEYS  lock, queue, waiters, clock
-- ARGV  1 hold
-- RETURNS { "left", now µs, 1 = it was the owner }
-- INVARIANTS  Safe to send any number of times, at any time: a hold's id is never used again (R1).

-- @include shared

local hold = ARGV[1]
redis.call("ZREM", queueKey, hold)
redis.call("HDEL", waitersKey, hold)
local owner = redis.call("HMGET", lockKey, "hold", "token", "since")
if owner[1] ~= hold then
  return { "left", nowMicros, 0 }
end
if not grantNext(owner[3], nil) then
  redis.call("DEL", lockKey)
end
return { "left", nowMicros, 1 }
