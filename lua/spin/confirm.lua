-- Raises the TTL of a hold by a write in any case, so that a WAIT after it on the same connection
-- has something to wait for.
--
-- KEYS  1 the lock
-- ARGV  1 hold   2 ttl ms
-- RETURNS { RENEWED | GONE | TAKEN, ttl ms }   ttl: 0 unless renewed
-- INVARIANTS  Never shortens a TTL (R2).

local holder = redis.call("GET", KEYS[1])
if holder ~= ARGV[1] then
  return { holder and TAKEN or GONE, 0 }
end
local ttl = math.max(redis.call("PTTL", KEYS[1]), tonumber(ARGV[2]))
redis.call("PEXPIRE", KEYS[1], ttl)
return { RENEWED, ttl }
