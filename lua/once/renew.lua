-- Raises the TTL of running turns.
--
-- KEYS  1 to 100 turns
-- ARGV  for each turn: 1 hold   2 ttl ms
-- RETURNS { ...all { RENEWED | GONE | TAKEN, ttl ms } }   ttl: 0 unless renewed
-- INVARIANTS  Never shortens a TTL. RACE: it changes only a running turn, so a renewal after the end
--         does not make the turn longer.

local answers = {}
for i, turn in ipairs(KEYS) do
  local ttl = tonumber(ARGV[2 * i])
  -- A key of another type has another owner; the other turns of this call must still be renewed.
  local value = redis.pcall("GET", turn)
  local answer, left = TAKEN, 0
  if type(value) == "string" and string.sub(value, 1, 3) == "1r "
      and string.sub(value, 21) == ARGV[2 * i - 1] then
    answer, left = RENEWED, redis.call("PTTL", turn)
    if left < ttl then
      redis.call("PEXPIRE", turn, ttl)
      left = ttl
    end
  elseif not value then
    answer = GONE
  end
  answers[2 * i - 1], answers[2 * i] = answer, left
end
return answers
