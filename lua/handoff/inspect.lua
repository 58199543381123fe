-- Shows the holder and the waiters of a lock, for people.
--
-- KEYS  lock, queue, clients, clock
-- ARGV  1 "?" and a nonce: a holder that may have nobody inside is asked whether that is so; left out: nobody is asked
-- RETURNS { hold or "", token, remaining ms, told, waiting holds in order... }
-- INVARIANTS  Changes nothing. Not more than 1 000 of them.

-- @include start
local shown = { "", 0, 0, 0 }
local value = call("GET", lock)
if value then
  -- @include foreign
  shown = { string.match(value, "^[^ ]*", 38), sub(value, 4, 19), call("PTTL", lock), string.byte(value, 2) - 48 }
end
for _, entry in ipairs(call("ZRANGE", queue, 0, 999)) do
  table.insert(shown, string.match(entry, "^[01] %d+ %d+ ([^ ]+)"))
end
local nonce = ARGV[1]
if nonce and shown[4] == 2 then
  -- @include recall
end
return shown
