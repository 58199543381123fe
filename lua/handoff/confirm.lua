-- Raises the TTL of a hold by a write in any case, so that a WAIT after it on the same connection has something to wait
-- for: WAIT counts the replicas that have what its own connection wrote, and one that wrote nothing proves nothing.
--
-- KEYS  lock
-- ARGV  1 hold   2 ttl ms
-- RETURNS { "renewed" | "gone" | "taken", ttl ms (0 unless renewed) }
-- INVARIANTS  Never shortens a TTL (R2).

local value = redis.call("GET", KEYS[1])
if not value then
  return { "gone", 0 }
elseif string.match(value, "^%S+") ~= ARGV[1] then
  return { "taken", 0 }
end
local ttl = math.max(redis.call("PTTL", KEYS[1]), tonumber(ARGV[2]))
redis.call("PEXPIRE", KEYS[1], ttl)
return { "renewed", ttl }
