-- Removes the result. A run under way is not stopped, and stores its own.
--
-- KEYS  result
-- ARGV  none
-- RETURNS { KEPT, rest ms }   new callers would have got it
--         GONE
-- INVARIANTS  Neither a copy of finish nor an older run brings it back: they look at `last`.

local call, sub = redis.call, string.sub
local result = KEYS[1]
-- @include ../handoff/time
-- @include result
call("DEL", result)
return rest > 0 and { KEPT, rest } or GONE
