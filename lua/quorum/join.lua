-- One more node for a quorum lock that a majority has granted already: one that did not vote for
-- it, or lost it since then.
--
-- KEYS  lock, clock
-- ARGV  1 hold
--       2 ttl ms   the rest of the lease
--       3 token
--       4 last     token that is reserved with it
--       5 notAfter ms   by this node's clock: after it this command is stale; 0 = unknown
-- RETURNS { OWNER, at µs, token 0.. }
--         { HELD, at µs, ttl ms, holder text }   ttl -1: none
--         { STALE, at µs }
-- INVARIANTS  Stores the token that was agreed on, and no other. The clock never goes back, and is
--         written first: if that is refused, nothing was done (R5). Never shortens a TTL (R2). If the
--         key is gone another client may have had the lock since, so the caller does not count this
--         node before the others have confirmed the hold: see `QuorumHold`.

local lockKey, clockKey, hold, ttl, notAfter = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[5])
local time = redis.call("TIME")
local nowMicros = time[1] * 1000000 + time[2]
if notAfter > 0 and nowMicros / 1000 > notAfter then
  return { STALE, nowMicros }
end
local value = redis.call("GET", lockKey)
if value then
  local holder = string.match(value, "^%S+")
  local left = redis.call("PTTL", lockKey)
  if holder ~= hold then
    return { HELD, nowMicros, left, holder or "" }
  end
  -- Its vote was cast here, or it has joined here, and the answer was lost.
  ttl = math.max(left, ttl)
end
if (tonumber(redis.call("GET", clockKey) or 0) or 0) < tonumber(ARGV[4]) then
  redis.call("SET", clockKey, ARGV[4])
end
redis.call("SET", lockKey, hold .. " " .. ARGV[3], "PX", ttl)
return { OWNER, nowMicros, ARGV[3] }
