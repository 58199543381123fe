-- Who holds a plain RLock, for people. Redisson keeps no list of the waiters.
--
-- KEYS  1 the lock
-- ARGV  none
-- RETURNS { owner or "", 0, remaining ms (-1: no TTL) }
-- INVARIANTS  Changes nothing.

local owner = redis.call("HKEYS", KEYS[1])[1]
return { owner or "", 0, owner and redis.call("PTTL", KEYS[1]) or 0 }
