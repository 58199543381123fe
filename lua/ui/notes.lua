-- Shows the notes of callers that wait while their scopes hold locks, for people.
--
-- KEYS  waits  as deadlocks/note.lua has it
-- ARGV  1 the maximum number of members
-- RETURNS { now µs, "<ref> <end ms> <id> <note>" … }  including ended ones
-- INVARIANTS  Changes nothing.

local call, sub = redis.call, string.sub
-- @include ../handoff/time
return { now, call("ZRANGE", KEYS[1], 0, tonumber(ARGV[1]) - 1) }
