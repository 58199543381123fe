-- Where the nodes of a majority answered different tokens: stores the largest, before anybody uses it.
--
-- KEYS  lock, clock
-- ARGV  1 hold   2 token   3 the last of its passes' tokens
-- RETURNS { "agreed" | "gone" | "taken" }
-- INVARIANTS  Only where the hold owns the lock: a vote for another hold comes after the end of this one, and so after this
--         write. The clock never goes back.

local lockKey, clockKey = KEYS[1], KEYS[2]
local value = redis.call("GET", lockKey)
if not value then
  return { "gone" }
elseif string.match(value, "^%S+") ~= ARGV[1] then
  return { "taken" }
end
if tonumber(redis.call("GET", clockKey) or 0) < tonumber(ARGV[3]) then
  redis.call("SET", clockKey, ARGV[3])
end
redis.call("SET", lockKey, ARGV[1] .. " " .. ARGV[2], "KEEPTTL")
return { "agreed" }
