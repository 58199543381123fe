-- Shows the holder and the waiters of a lock, for people.
--
-- KEYS  lock, queue, clients, clock
-- ARGV  none
-- RETURNS { hold or "", token, remaining ms, waiting holds in order... }
-- INVARIANTS  Changes nothing. Not more than 1 000 of them.

-- @include start
local shown = { "", 0, 0 }
local value = call("GET", lock)
if value then
  -- @include foreign
  shown = { string.match(value, "^[^ ]*", 38), sub(value, 4, 19), call("PTTL", lock) }
end
for _, entry in ipairs(call("ZRANGE", queue, 0, 999)) do
  table.insert(shown, string.match(entry, "^[01] %d+ %d+ ([^ ]+)"))
end
return shown
