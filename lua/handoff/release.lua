-- Ends a hold and hands the lock to the first live waiter.
--
-- KEYS  lock, queue, clients, clock
-- ARGV  1 hold   2 token
-- RETURNS RELEASED
--         TAKEN
--         { GONE, clock 0.. }   clock: its last token
-- INVARIANTS  A second copy answers what the first did (RELEASED) while the chain of hand-overs is
--         unbroken; it never touches a later hold. The first write is one that a full Redis does not
--         refuse.
-- MODEL  `release` in proof/server.pml

-- @include start
local value = call("GET", lock)
if not value or sub(value, 38) ~= ARGV[1] then
  -- @include ended
end
local first = call("ZPOPMIN", queue)
if not first[1] then
  call("DEL", lock)
  return RELEASED
end
-- @include time
-- @include hand-over
-- @include shared
handOver(first, sub(value, 21, 36))
return RELEASED
