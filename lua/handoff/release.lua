-- Ends a hold and hands the lock to the first live waiter.
--
-- KEYS  lock, queue, waiters, clock
-- ARGV  1 hold   2 its token
-- RETURNS { "released" | "gone" | "taken", last token of the clock (0 when it was not needed) }
-- INVARIANTS  A second copy answers what the first did ("released") as long as the chain of hand-overs is unbroken;
--         it never touches a later hold.
-- MODEL  `release` in proof/server.pml

-- @include shared

local hold, token, since = owner()
if hold ~= ARGV[1] then
  return ended(ARGV[2], token, since)
end
handOver(since)
return { "released", 0 }
