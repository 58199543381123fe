-- Ends a hold before its time: until then the lock is held by a hold that is nobody's.
--
-- KEYS  lock, queue, clients, clock
-- ARGV  1 hold   2 its token   3 until: server time in µs   4 a hold that no command has named before
-- RETURNS RELEASED, TAKEN or { GONE, last token of the clock }, as release; HELD: that time is over, nothing was done
-- INVARIANTS  A second copy answers what the first did (RELEASED) as long as nobody's hold lives. To every other script that is a
--         hold as any other: it is not told of waiters, none of its commands is ever sent, and its TTL ends it.

-- @include start
-- @include time
local value = call("GET", lock)
if not value or sub(value, 38) ~= ARGV[1] then
  -- @include ended
end
local left = math.ceil((tonumber(ARGV[3]) - now) / 1000)
if left <= 0 then
  return HELD
end
-- First a write that a full Redis does not refuse.
call("PEXPIRE", lock, left)
call("SET", lock, "10 " .. string.format("%.0f", sub(value, 4, 19) + 1) .. " " .. sub(value, 21, 37) .. ARGV[4], "PX", left)
return RELEASED
