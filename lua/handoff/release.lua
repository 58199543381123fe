-- Ends a hold and hands the lock to the first live waiter.
--
-- KEYS  lock, queue, waiters, clock
-- ARGV  1 hold   2 its token
-- RETURNS { "released" | "gone" | "taken", now µs, last token of the clock (0 when it was not needed) }
-- INVARIANTS  A second copy answers what the first did ("released") as long as the chain of hand-overs is unbroken;
--         it never touches a later hold.

-- @include shared

local hold, token = ARGV[1], tonumber(ARGV[2])
local owner = redis.call("HMGET", lockKey, "hold", "token", "since")
if owner[1] ~= hold then
  return ended(token, owner)
end
if not grantNext(owner[3], nil) then
  redis.call("DEL", lockKey)
end
return { "released", nowMicros, 0 }
