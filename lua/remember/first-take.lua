-- The first take of a connection: first checks whether the user may run all commands of the scripts. A
-- script that may not run its second write would leave half of its work done.
--
-- KEYS  as take
-- ARGV  as take, and then a channel like those of grants
-- RETURNS as take, or an error that names the first command that is missing
-- INVARIANTS  If a right is missing nothing was done.

-- @include ../handoff/rights
-- @include ../rights
local commands = needed(table.remove(ARGV))
for _, command in ipairs({
  { "GET", KEYS[5] }, { "SET", KEYS[5], "" }, { "DEL", KEYS[5] }, { "PTTL", KEYS[5] },
  { "PEXPIRE", KEYS[5], 1 },
}) do
  table.insert(commands, command)
end
local missing = missingRight(commands)
if missing then
  return missing
end
-- @include take
