-- Redisson's renewal of RLocks.
--
-- KEYS  1 to 100 locks
-- ARGV  for each lock: 1 hold   2 ttl ms
-- RETURNS { ...all { RENEWED | GONE | TAKEN, ttl ms } }   ttl: 0 unless renewed; -1: no TTL
-- INVARIANTS  Never shortens a TTL.

local answers = {}
for i, lockKey in ipairs(KEYS) do
  local answer, left = TAKEN, 0
  -- A key of another type; the other locks of this call must still be renewed.
  if redis.pcall("HEXISTS", lockKey, ARGV[2 * i - 1]) == 1 then
    local ttl = tonumber(ARGV[2 * i])
    answer, left = RENEWED, redis.call("PTTL", lockKey)
    if left >= 0 and left < ttl then
      redis.call("PEXPIRE", lockKey, ttl)
      left = ttl
    end
  elseif redis.call("EXISTS", lockKey) == 0 then
    answer = GONE
  end
  answers[2 * i - 1], answers[2 * i] = answer, left
end
return answers
