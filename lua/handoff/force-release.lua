-- Takes the lock away from whoever holds it, tells him, and hands it to the first live waiter.
--
-- KEYS  lock, queue, waiters, clock
-- ARGV  none
-- RETURNS { 1 = somebody held it, now µs }
-- INVARIANTS  Starts a new chain (`since`): to the old holder his release is "gone" or "taken", never "released".

-- @include shared

local owner = redis.call("HMGET", lockKey, "hold", "channel")
if not owner[1] then
  return { 0, nowMicros }
end
if not grantNext(nil, nil) then
  redis.call("DEL", lockKey)
end
if owner[2] ~= "" then
  redis.pcall("PUBLISH", owner[2], table.concat({ "revoked", owner[1], lockKey }, " "))
end
return { 1, nowMicros }
