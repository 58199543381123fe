-- Raises the end of a hold by a write in any case, so that a WAIT after it on the same connection
-- has something to wait for.
--
-- KEYS  hash
-- ARGV  1 hold   2 ttl ms
-- RETURNS { RENEWED | GONE | TAKEN, ttl ms }   ttl: 0 unless renewed
-- INVARIANTS  As renew.

-- @include renewal
return { renewal(KEYS[1], ARGV[1], tonumber(ARGV[2]), true) }
