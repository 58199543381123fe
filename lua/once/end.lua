-- Ends a run: none begins again before the turn is over.
--
-- KEYS  turn
-- ARGV  1 hold   2 every ms
--       3 aligned   1: turns are slots of the server's clock
--       4 begin µs  as begin answered it
-- RETURNS RELEASED   also to a copy while the turn lasts
--         GONE       it was not this hold's any more
--         TAKEN
-- INVARIANTS  The turn counts from its beginning, so neither a late end nor a second one makes it longer.

-- @include start
-- @include ../handoff/time
if not value then
  return GONE
elseif not isMine then
  return not isRunning and tonumber(begin) == tonumber(ARGV[4]) and RELEASED or TAKEN
end
local left = untilEnd(tonumber(begin), now, tonumber(ARGV[2]), ARGV[3] == "1")
if left <= 0 then
  call("DEL", turn)
else
  -- First a write that a full Redis does not refuse.
  call("PEXPIRE", turn, left)
  call("SET", turn, "1d " .. begin, "PX", left)
end
return RELEASED
