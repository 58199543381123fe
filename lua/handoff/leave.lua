-- Takes a hold out of everything: out of the queue, and when it has become the owner meanwhile, out of the lock.
--
-- KEYS  lock, queue, waiters, clock
-- ARGV  1 hold
-- RETURNS { "left", 1 = it was the owner }
-- INVARIANTS  Safe to send any number of times, at any time: a hold's id is never used again (R1).
-- MODEL  `leave` in proof/server.pml

-- @include shared

local hold, _, since = owner()
call("ZREM", queueKey, ARGV[1])
call("HDEL", waitersKey, ARGV[1])
if hold ~= ARGV[1] then
  return { "left", 0 }
end
handOver(since)
return { "left", 1 }
