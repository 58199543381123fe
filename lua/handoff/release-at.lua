-- Ends a hold before its time: until then the lock is held by a hold that is nobody's. When that time is over it is a release.
--
-- KEYS  lock, queue, clients, clock
-- ARGV  1 hold   2 its token   3 until: server time in µs   4 a hold that no command has named before
--       5 ms that are left of its time at the most, by the clock of its client
-- RETURNS RELEASED, TAKEN or { GONE, last token of the clock }, as release
-- INVARIANTS  A second copy answers what the first did (RELEASED) as long as nobody's hold lives. To every other script that is a
--         hold as any other: it is not told of waiters, none of its commands is ever sent, and its TTL ends it.
-- MODEL  `releaseAt` in proof/min-hold.pml

-- @include start
-- @include time
local value = call("GET", lock)
if not value or sub(value, 38) ~= ARGV[1] then
  -- @include ended
end
-- RACE: this server's clock was set back since the token was given, or the token is of a clock that was ahead: by it an hour may
-- be left of a second, and nobody's hold would take it. RACE: the command comes late: by its client's clock it would add its delay.
local left = math.min(math.ceil((tonumber(ARGV[3]) - now) / 1000), tonumber(ARGV[5]))
if left > 0 then
  -- First a write that a full Redis does not refuse.
  call("PEXPIRE", lock, left)
  call("SET", lock, "10 " .. string.format("%.0f", sub(value, 4, 19) + 1) .. " " .. sub(value, 21, 37) .. ARGV[4], "PX", left)
  return RELEASED
end
-- RACE: its process has exited behind this command, and could send no other one.
local first = call("ZPOPMIN", queue)
if not first[1] then
  call("DEL", lock)
  return RELEASED
end
-- @include hand-over
-- @include shared
handOver(first, sub(value, 21, 36))
return RELEASED
