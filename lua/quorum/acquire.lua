-- One node's vote for a quorum lock.
--
-- KEYS  lock, clock
-- ARGV  1 hold   2 "<lease ms> <proposed token> <passes> <notAfter>"
--         notAfter: this node's time in ms after which this command is stale; 0 = unknown
-- RETURNS { "owner", now µs, token, ttl ms }
--         { "held", now µs, holder's ttl ms (-1: none), holder }
--         { "stale", now µs }
--         or an error: the clock of this node is too large for a token, and nothing was done
-- INVARIANTS  Never shortens a TTL (R2). Every token that this node has answered, with its passes, is at most its clock's,
--         and the next one is larger. The clock is written first: where that is refused, nothing was done (R5).

local lockKey, clockKey = KEYS[1], KEYS[2]
local lease, proposal, passes, notAfter = string.match(ARGV[2], "^(%d+) (%d+) (%d+) (%d+)$")
local time = redis.call("TIME")
local nowMicros = time[1] * 1000000 + time[2]
if tonumber(notAfter) > 0 and nowMicros / 1000 > tonumber(notAfter) then
  return { "stale", nowMicros }
end
local value = redis.call("GET", lockKey)
if value then
  local holder, token = string.match(value, "^(%S+) (%d+)$")
  local left = redis.call("PTTL", lockKey)
  if holder ~= ARGV[1] then
    return { "held", nowMicros, left, holder or "" }
  end
  -- A copy of this command was here before.
  if left < tonumber(lease) then
    redis.call("PEXPIRE", lockKey, lease)
    left = tonumber(lease)
  end
  return { "owner", nowMicros, token, left }
end
local last = redis.call("GET", clockKey) or "0"
local token = math.max((tonumber(last) or 0) + 1, tonumber(proposal))
-- As a µs clock: the year 2255, just below 2^53, from where on numbers are not exact. Nobody has got there by asking for locks.
if not (token + passes <= 9e15) then
  return redis.error_reply("ERR the clock of this node is too large: " .. clockKey .. " is " .. last .. ". Delete that key")
end
local text = string.format("%.0f", token)
redis.call("SET", clockKey, string.format("%.0f", token + passes))
redis.call("SET", lockKey, ARGV[1] .. " " .. text, "PX", lease)
return { "owner", nowMicros, text, tonumber(lease) }
