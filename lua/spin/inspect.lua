-- The holder of a spin lock, for people. Redis does not know the waiters.
--
-- KEYS  1 the lock
-- ARGV  none
-- RETURNS { hold text, token 0, remaining ms }   "": it is free; remaining -1: no TTL
-- INVARIANTS  Changes nothing.

local holder = redis.call("GET", KEYS[1])
return { holder or "", 0, holder and redis.call("PTTL", KEYS[1]) or 0 }
