-- Removes a hold everywhere: from the queue, and if it has units meanwhile, from the hash.
--
-- KEYS  hash, queue, clients, clock
-- ARGV  1 hold    2 entry   "": it has none, or was granted and so has none any more
-- RETURNS { RELEASED | GONE, more 0|1 }   RELEASED: it had units
-- INVARIANTS  Safe to send any number of times, at any time: a hold's id is never reused. Waiters
--         after a place that is given up may fit, and get their units.
-- MODEL  `run_` with LEAVE in proof/counted-server.pml

-- @include start
-- @include ../handoff/time
-- @include field
local hold, entry, number, looks, queues = ARGV[1], ARGV[2], 0, false, false
local stored = call("HMGET", hash, "=", hold)
-- @include books
-- @include shared
-- @include end
call("ZREM", queue, entry)
wrote = true
if heads[1] == entry then
  heads = call("ZRANGE", queue, 0, 0, "WITHSCORES")
end
if isMine then
  endHold(hold, mode, till, units, token, 0)
end
if heads[1] then
  advance(nil)
end
commit(false)
return { isMine and RELEASED or GONE, more }
