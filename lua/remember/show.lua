-- What new callers get.
--
-- KEYS  result
-- ARGV  none
-- RETURNS { KEPT, at µs, token, rest ms, result text }
--         GONE
-- INVARIANTS  Writes nothing but a TTL that is too long, after a step of the clock.

local call, sub = redis.call, string.sub
local result = KEYS[1]
-- @include ../handoff/time
-- @include result
if rest > 0 then
  return { KEPT, now, sub(found, 4, 19), rest, found }
end
return GONE
