-- Sets how many permits there are from now on, for all callers, whatever their code says.
--
-- KEYS  hash, queue, clients, clock
-- ARGV  1 permits
--       2 stamp   as inspect returned it: the server's time in µs then, and above the stamp of the
--                 last one
-- RETURNS { RELEASED, old 0.., used 0.., more 0|1 }   old: 0 = there was none; also to a copy
--         { TAKEN, old 0.., used 0.., more 0|1 }      a later number, old, is stored; nothing was done
-- INVARIANTS  A late copy never undoes a later number. No holder loses units: if more are used,
--         none are granted until fewer are. The number does not expire: the hash has no TTL from now
--         on.
-- MODEL  `setPermits` in proof/counted-server.pml

-- @include start
-- @include ../handoff/time
-- @include field
local hold, number, looks, queues = "", 0, false, false
local stored = call("HMGET", hash, "=", hold)
-- @include books
-- @include shared
local asked, old = format("%016.0f", ARGV[2]), isKnown and permits or 0
-- Two callers may have received the same stamp: the second one is late.
local isLate = source == "s" and (asked < stamp or asked == stamp and permits ~= tonumber(ARGV[1]))
if not isLate and asked ~= stamp then
  source, permits, stamp, isChanged = "s", tonumber(ARGV[1]), asked, true
end
-- Before the number is written, so that a user without the right to do this changes nothing. A new
-- hash has no TTL.
if source == "s" and exists then
  call("PERSIST", hash)
  wrote = true
end
if heads[1] then
  advance(nil)
end
commit(not exists)
return { isLate and TAKEN or RELEASED, old, used, more }
