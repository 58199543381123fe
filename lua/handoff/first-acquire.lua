-- The first acquire of a connection: looks before it whether the user may run all that the scripts run. A script that pops
-- a waiter and may not run its next command would lose it; so none is sent before this one was answered.
--
-- KEYS  as acquire
-- ARGV  as acquire, and behind these a channel such as grants are published to
-- RETURNS as acquire, or an error that names the first command that is missing
-- INVARIANTS  Where a right is missing nothing was done.

-- @include rights
-- @include ../rights
local missing = missingRight(needed(ARGV[#ARGV]))
if missing then
  return missing
end
-- @include acquire
