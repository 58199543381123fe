-- The first command of a new connection, if that is a re-check: first checks the rights, as
-- first-acquire does.
--
-- KEYS  as recheck
-- ARGV  as recheck, and then a channel like those of grants
-- RETURNS as recheck, or an error that names the first command that is missing
-- INVARIANTS  If a right is missing nothing was done.

-- @include rights
-- @include ../rights
local missing = missingRight(needed(ARGV[#ARGV]))
if missing then
  return missing
end
-- @include recheck
