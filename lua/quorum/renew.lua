-- Raises the TTL of a hold at one node: the watchdog's renewal, a claim, an extension.
--
-- KEYS  lock, clock; the clock is not touched
-- ARGV  1 hold   2 ttl ms
-- RETURNS { RENEWED | GONE | TAKEN, ttl ms }   ttl: 0 unless renewed
-- INVARIANTS  Never shortens a TTL (R2). A node that has lost the key does not get it back by this,
--         because the holder must learn of that: `join.lua` brings it back.

local value = redis.call("GET", KEYS[1])
if not value then
  return { GONE, 0 }
elseif string.match(value, "^%S+") ~= ARGV[1] then
  return { TAKEN, 0 }
end
local left = redis.call("PTTL", KEYS[1])
if left < tonumber(ARGV[2]) then
  redis.call("PEXPIRE", KEYS[1], ARGV[2])
  left = tonumber(ARGV[2])
end
return { RENEWED, left }
