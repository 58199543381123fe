-- One node's vote for a quorum lock.
--
-- KEYS  lock, clock
-- ARGV  1 hold   2 lease ms
--       3 token   a proposal
--       4 passes
--       5 notAfter ms   by this node's clock: after it this command is stale; 0 = unknown
-- RETURNS { OWNER, at µs, token 0.. }
--         { HELD, at µs, ttl ms, holder text }   ttl -1: none
--         { STALE, at µs }
--         or an error: the clock of this node is too large for a token, and nothing was done
-- INVARIANTS  Never shortens a TTL (R2). Every token that this node has answered, including those
--         reserved for local hand-offs, is at most its clock's, and the next one is larger. The clock
--         is written first: if that is refused, nothing was done (R5).

local lockKey, clockKey, hold, lease, notAfter = KEYS[1], KEYS[2], ARGV[1], ARGV[2], tonumber(ARGV[5])
local time = redis.call("TIME")
local nowMicros = time[1] * 1000000 + time[2]
if notAfter > 0 and nowMicros / 1000 > notAfter then
  return { STALE, nowMicros }
end
local value = redis.call("GET", lockKey)
if value then
  local holder, token = string.match(value, "^(%S+) (%d+)$")
  local left = redis.call("PTTL", lockKey)
  if holder ~= hold then
    return { HELD, nowMicros, left, holder or "" }
  end
  -- A copy of this command was executed before.
  if left < tonumber(lease) then
    redis.call("PEXPIRE", lockKey, lease)
  end
  return { OWNER, nowMicros, token }
end
local last = redis.call("GET", clockKey) or "0"
local token = math.max((tonumber(last) or 0) + 1, tonumber(ARGV[3]))
-- As a µs clock: the year 2255, just below 2^53, above which numbers are not exact. No client gets
-- there by requesting locks.
if not (token + ARGV[4] <= 9e15) then
  return redis.error_reply("ERR the clock of this node is too large: "
    .. clockKey .. " is " .. last .. ". Delete that key")
end
local text = string.format("%.0f", token)
redis.call("SET", clockKey, string.format("%.0f", token + ARGV[4]))
redis.call("SET", lockKey, hold .. " " .. text, "PX", lease)
return { OWNER, nowMicros, text }
