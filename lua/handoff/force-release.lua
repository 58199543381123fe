-- Takes the lock away from whoever holds it, tells him, and hands it to the first live waiter.
--
-- KEYS  lock, queue, waiters, clock
-- ARGV  1 label of the caller for the holder, as one word; "": none
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
  local label = ARGV[1] ~= "" and ARGV[1] or nil
  redis.pcall("PUBLISH", channel, table.concat({ "revoked", hold, lockKey, label }, " "))
end
return { 1 }
