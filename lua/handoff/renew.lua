-- Raises the TTL of holds, and names only their locks: renew-stays cannot do that while a slot moves.
--
-- KEYS  1 to 100 locks
-- ARGV  for each lock: 1 hold   2 ttl ms
-- RETURNS { ...all { RENEWED | GONE | TAKEN, ttl ms } }   ttl: 0 unless renewed
-- INVARIANTS  Never shortens a TTL, so a copy that comes after an extension does no harm.
-- MODEL  `renew` in proof/server.pml

local answers = {}
for i, lock in ipairs(KEYS) do
  local hold, ttl = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  -- A key of another type has another owner; the other locks of this call must still be renewed.
  local value = redis.pcall("GET", lock)
  local answer, left = TAKEN, 0
  if type(value) == "string" and string.sub(value, 38) == hold then
    answer, left = RENEWED, redis.call("PTTL", lock)
    if left < ttl then
      redis.call("PEXPIRE", lock, ttl)
      left = ttl
    end
  elseif not value then
    answer = GONE
  end
  answers[2 * i - 1], answers[2 * i] = answer, left
end
return answers
