-- Raises the TTLs of a term and of what its leader has proclaimed.
--
-- KEYS  lock, leader
-- ARGV  1 hold   2 ttl ms
--       3 said ms   ttl of the proclamation
-- RETURNS { RENEWED | GONE | TAKEN, ttl ms, number 0.. }   ttl: 0 unless renewed; number: of the
--         proclamation that is stored, 0 = none: proclaim again
-- INVARIANTS  Never shortens a TTL.

-- @include start
if not value then
  return { GONE, 0, 0 }
elseif sub(value, 38) ~= ARGV[1] then
  return { TAKEN, 0, 0 }
end
local left = {}
for i, key in ipairs(KEYS) do
  local ttl = tonumber(ARGV[i + 1])
  left[i] = call("PTTL", key)
  if left[i] < ttl then
    call("PEXPIRE", key, ttl)
    left[i] = ttl
  end
end
return { RENEWED, left[1], number or 0 }
