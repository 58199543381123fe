-- The nodes of a majority have voted, with different tokens or at different times: stores the largest
-- token, before any caller uses it, and says that this node has kept the hold since its vote.
--
-- KEYS  lock, clock
-- ARGV  1 hold   2 token
--       3 last   the last token that it reserves for local hand-offs
-- RETURNS { OWNER | STALE | GONE | TAKEN, token 0.. }   the token of 2; OWNER: agreed; STALE: late, the
--         hold has a larger one
-- INVARIANTS  Only if the hold owns the lock: a vote for another hold comes after the end of this
--         one, and so after this write. The clock never goes back. A larger token stays: it belongs to
--         a vote that came after the others were counted, perhaps after another client's lease.

local lockKey, clockKey = KEYS[1], KEYS[2]
local value = redis.call("GET", lockKey)
if not value then
  return { GONE, ARGV[2] }
end
local holder, voted = string.match(value, "^(%S+) (%d+)$")
if holder ~= ARGV[1] then
  return { TAKEN, ARGV[2] }
elseif tonumber(voted) > tonumber(ARGV[2]) then
  return { STALE, ARGV[2] }
end
if (tonumber(redis.call("GET", clockKey) or 0) or 0) < tonumber(ARGV[3]) then
  redis.call("SET", clockKey, ARGV[3])
end
redis.call("SET", lockKey, ARGV[1] .. " " .. ARGV[2], "KEEPTTL")
return { OWNER, ARGV[2] }
