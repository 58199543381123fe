-- Shows the notes of callers that wait while their scopes hold locks, for people.
--
-- KEYS  waits  as deadlocks/note.lua has it
-- ARGV  1 most   as many members
-- RETURNS as ZRANGE, after the time: { now µs, { "<ref> <end ms> <id> <note>" … } }, ended ones included
-- INVARIANTS  Changes nothing.

local call, sub = redis.call, string.sub
-- @include ../handoff/time
return { now, call("ZRANGE", KEYS[1], 0, tonumber(ARGV[1]) - 1) }
