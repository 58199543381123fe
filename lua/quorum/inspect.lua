-- The holder of the lock at one node, for people.
--
-- KEYS  lock, clock; the clock is not touched
-- ARGV  none
-- RETURNS { hold text, token 0.., remaining ms }   "": it is free
-- INVARIANTS  Changes nothing.

local value = redis.call("GET", KEYS[1])
if not value then
  return { "", 0, 0 }
end
local holder, token = string.match(value, "^(%S+) (%d+)$")
return { holder or value, token or 0, redis.call("PTTL", KEYS[1]) }
