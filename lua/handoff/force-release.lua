-- Takes the lock away from whoever holds it, tells him, and hands it to the first live waiter.
--
-- KEYS  lock, queue, waiters, clock
-- ARGV  none
-- RETURNS { 1 = somebody held it }
-- INVARIANTS  Starts a new chain (`since`): to the old holder his release is "gone" or "taken", never "released".
-- MODEL  `forceRelease` in proof/server.pml

-- @include shared

local hold, _, _, channel = owner()
if not hold then
  return { 0 }
end
handOver(nil)
if channel ~= "" then
  redis.pcall("PUBLISH", channel, table.concat({ "revoked", hold, lockKey }, " "))
end
return { 1 }
