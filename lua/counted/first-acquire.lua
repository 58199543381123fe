-- The first acquire of a connection: looks before it whether the user may run all that the scripts
-- run. A script that may not run its second write would leave half of its work behind.
--
-- KEYS  as acquire
-- ARGV  as acquire, and behind these a channel such as grants are published to
-- RETURNS as acquire, or an error that names the first command that is missing
-- INVARIANTS  Where a right is missing nothing was done.

-- @include rights
-- @include ../rights
local missing = missingRight(needed(table.remove(ARGV)))
if missing then
  return missing
end
-- @include acquire
