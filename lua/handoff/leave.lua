-- Removes a hold everywhere: from the queue, and if it has become the owner meanwhile, from the lock.
--
-- KEYS  lock, queue, clients, clock
-- ARGV  1 hold    without its label, which an unexpected grant does not contain
--       2 entry   "": it has none, or was granted and so has none any more
-- RETURNS RELEASED   it was the owner
--         GONE
-- INVARIANTS  Safe to send any number of times, at any time: a hold's id is never reused.
-- MODEL  `leave` in proof/server.pml

-- @include start
-- First, because the lock's key may be of another type, and an entry without a caller must not
-- stay.
call("ZREM", queue, ARGV[2])
local value, last = call("GET", lock), 37 + #ARGV[1]
if not value or sub(value, 38, last) ~= ARGV[1] or #value > last and string.byte(value, last + 1) ~= 32 then
  return GONE
end
-- @include time
-- @include shared
handOver(call("ZPOPMIN", queue), sub(value, 21, 36))
return RELEASED
