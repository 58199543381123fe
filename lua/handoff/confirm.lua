-- Raises the TTL of a hold by a write in any case, so that a WAIT after it on the same connection
-- has something to wait for: WAIT counts the replicas that have the writes of its own connection, and
-- a connection that wrote nothing proves nothing.
--
-- KEYS  lock
-- ARGV  1 hold   2 ttl ms
-- RETURNS { RENEWED | GONE | TAKEN, ttl ms }   ttl: 0 unless renewed
-- INVARIANTS  Never shortens a TTL.

local value = redis.call("GET", KEYS[1])
if not value then
  return { GONE, 0 }
elseif string.sub(value, 38) ~= ARGV[1] then
  return { TAKEN, 0 }
end
local ttl = math.max(redis.call("PTTL", KEYS[1]), tonumber(ARGV[2]))
redis.call("PEXPIRE", KEYS[1], ttl)
return { RENEWED, ttl }
