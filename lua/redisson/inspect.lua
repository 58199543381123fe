-- The holder of an RLock, for people. Redisson keeps no list of the waiters.
--
-- KEYS  1 the lock   2 for a fenced lock: the token counter
-- ARGV  none
-- RETURNS { hold text, token 0.., remaining ms }   token 0: free, or not fenced; remaining -1: no TTL
-- INVARIANTS  Changes nothing. The holder's token is the last one that was given.

local owner = redis.call("HKEYS", KEYS[1])[1]
if not owner then
  return { "", 0, 0 }
end
local token = KEYS[2] and tonumber(redis.call("GET", KEYS[2])) or 0
return { owner, token, redis.call("PTTL", KEYS[1]) }
