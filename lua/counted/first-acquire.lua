-- The first acquire of a connection: first checks whether the user may run all commands of the
-- scripts. A script that may not run its second write would leave half of its work done.
--
-- KEYS  as acquire
-- ARGV  as acquire, and then a channel like those of grants
-- RETURNS as acquire, or an error that names the first command that is missing
-- INVARIANTS  If a right is missing nothing was done.

-- @include rights
-- @include ../rights
local missing = missingRight(needed(table.remove(ARGV)))
if missing then
  return missing
end
-- @include acquire
