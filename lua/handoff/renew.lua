-- Raises the TTL of holds: the watchdog's renewal, a claim, an extension.
--
-- KEYS  1 to 100 locks
-- ARGV  for each lock: hold, ttl ms
-- RETURNS for each lock: "renewed" | "gone" | "taken", ttl ms (0 unless renewed)
-- INVARIANTS  Never shortens a TTL (R2), so a copy that comes after an extension does no harm.
-- MODEL  `renew` in proof/server.pml

local answers = {}
for i, lockKey in ipairs(KEYS) do
  local hold, ttl = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  -- A key of another type is somebody else's doing; it must not cost the other locks of this call their renewal.
  local value = redis.pcall("GET", lockKey)
  local answer, left = "taken", 0
  if type(value) == "string" and string.match(value, "^%S+") == hold then
    answer, left = "renewed", redis.call("PTTL", lockKey)
    if left < ttl then
      redis.call("PEXPIRE", lockKey, ttl)
      left = ttl
    end
  elseif not value then
    answer = "gone"
  end
  answers[2 * i - 1], answers[2 * i] = answer, left
end
return answers
