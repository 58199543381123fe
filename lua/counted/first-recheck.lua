-- The first command of a new connection, where that is a re-check: looks at the rights before it,
-- as first-acquire does.
--
-- KEYS  as recheck
-- ARGV  as recheck, and behind these a channel such as grants are published to
-- RETURNS as recheck, or an error that names the first command that is missing
-- INVARIANTS  Where a right is missing nothing was done.

-- @include rights
-- @include ../rights
local missing = missingRight(needed(ARGV[#ARGV]))
if missing then
  return missing
end
-- @include recheck
