-- Who holds the lock and who waits for it, for people.
--
-- KEYS  lock, queue, waiters, clock
-- ARGV  none
-- RETURNS { hold or "", token, remaining ms, waiting holds in order... }
-- INVARIANTS  Changes nothing.

-- @include shared

local owner = redis.call("HMGET", lockKey, "hold", "token")
if not owner[1] then
  return { "", 0, 0, unpack(redis.call("ZRANGE", queueKey, 0, 999)) }
end
return { owner[1], tonumber(owner[2]), redis.call("PTTL", lockKey), unpack(redis.call("ZRANGE", queueKey, 0, 999)) }
