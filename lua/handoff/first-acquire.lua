-- The first acquire of a connection: first checks whether the user may run all commands of the
-- scripts. A script that pops a waiter and may not run its next command would lose it; so none is
-- sent before this one was answered.
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
-- Redis 6.2 cannot check ahead, and the common case does not read the lock: a user that may not
-- read it would take it, and could never release it, because a release reads it first.
if not redis.acl_check_cmd then
  redis.call("GET", KEYS[1])
end
-- @include acquire
