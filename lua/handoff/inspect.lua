-- Who holds the lock and who waits for it, for people.
--
-- KEYS  lock, queue, waiters, clock
-- ARGV  none
-- RETURNS { hold or "", token, remaining ms, waiting holds in order... }
-- INVARIANTS  Changes nothing.

-- @include shared

local hold, token = owner()
local remaining = hold and call("PTTL", lockKey) or 0
return { hold or "", token or 0, remaining, unpack(call("ZRANGE", queueKey, 0, 999)) }
