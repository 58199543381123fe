-- Takes the lock away from its holder, tells the holder so, and hands the lock to the first live waiter.
--
-- KEYS  lock, queue, clients, clock
-- ARGV  1 label of the caller for the holder, as one word; "": none
-- RETURNS 1 = somebody held it, 0 = nobody
-- INVARIANTS  Starts a new chain (`since`): to the old holder its release is GONE or TAKEN, never RELEASED.
-- MODEL  `forceRelease` in proof/server.pml

-- @include start
local value = call("GET", lock)
if not value then
  return 0
end
-- @include foreign
local hold = string.match(value, "^[^ ]*", 38)
-- @include time
-- @include shared
handOver(call("ZPOPMIN", queue), nil)
redis.pcall("PUBLISH", sub(hold, 1, -23), "revoked " .. hold .. " " .. lock .. (ARGV[1] ~= "" and " " .. ARGV[1] or ""))
return 1
