-- Takes the lock away from its holder, notifies the holder, and hands the lock to the first live waiter.
--
-- KEYS  lock, queue, clients, clock
-- ARGV  1 label    of the caller for the holder, as one word; "": none
--       2 token?   of the holder that is meant, 16 digits; "": whichever it is
-- RETURNS { count 0..1 }   0: it was free, or had another holder than the one that is meant
-- INVARIANTS  Starts a new chain (`since`): to the old holder its release is GONE or TAKEN, never RELEASED.
-- MODEL  `forceRelease` in proof/server.pml

-- @include start
local value = call("GET", lock)
if not value then
  return 0
end
-- @include foreign
if (ARGV[2] or "") ~= "" and sub(value, 4, 19) ~= ARGV[2] then
  return 0
end
local hold = string.match(value, "^[^ ]*", 38)
-- @include time
-- @include shared
handOver(call("ZPOPMIN", queue), nil)
redis.pcall("PUBLISH", sub(hold, 1, -23),
  "revoked " .. hold .. " " .. lock .. (ARGV[1] ~= "" and " " .. ARGV[1] or ""))
return 1
