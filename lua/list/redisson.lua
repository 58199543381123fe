-- Shows the holder of an RLock, if this hash is one, which has exactly one field.
--
-- KEYS  a hash
-- ARGV  none
-- RETURNS { hold text, token 0, remaining ms }   "": it is another hash; remaining -1: no TTL
-- INVARIANTS  Changes nothing, and reads nothing of a large hash.

local key = KEYS[1]
if redis.call("HLEN", key) ~= 1 then
  return { "", 0, 0 }
end
return { redis.call("HKEYS", key)[1], 0, redis.call("PTTL", key) }
