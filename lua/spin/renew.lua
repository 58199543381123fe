-- Raises the TTL of holds: compare and extend.
--
-- KEYS  1 to 100 locks
-- ARGV  for each lock: 1 hold   2 ttl ms
-- RETURNS { ...all { RENEWED | GONE | TAKEN, ttl ms } }   ttl: 0 unless renewed
-- INVARIANTS  Never shortens a TTL (R2), so a copy that comes after an extension does no harm.

local answers = {}
for i, lockKey in ipairs(KEYS) do
  local ttl = tonumber(ARGV[2 * i])
  -- A key of another type has another owner; the other locks of this call must still be renewed.
  local holder = redis.pcall("GET", lockKey)
  local answer, left = holder and TAKEN or GONE, 0
  if holder == ARGV[2 * i - 1] then
    answer, left = RENEWED, redis.call("PTTL", lockKey)
    if left < ttl then
      redis.call("PEXPIRE", lockKey, ttl)
      left = ttl
    end
  end
  answers[2 * i - 1], answers[2 * i] = answer, left
end
return answers
