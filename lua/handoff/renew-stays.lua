-- Raises the TTL of holds, reports whether a caller waits for their locks, and has their clients
-- notified of waiters from now on: the watchdog's renewal, a claim, an extension, and the request of a
-- client that caches a lock.
--
-- KEYS  clock, then for each of 1 to 100 holds: lock, queue
-- ARGV  for each hold: 1 hold   2 ttl ms   3 told   "-": as it is
-- RETURNS { at µs, ...all { RENEWED | GONE | TAKEN, ttl ms, waits 0|1, told 0..2 } }
--         0 unless renewed; at 0: the clock was not raised, so no token up to now may be used
-- INVARIANTS  Never shortens a TTL, so a copy that comes after an extension does no harm. The clock
--         is not below now, so every later holder's token is above. A write that needs memory is
--         refused by a full Redis without an error, and reported.
-- MODEL  `renew`, `tell` and `confirmed` in proof/

local call, sub = redis.call, string.sub
local clock = KEYS[1]
-- @include time
local answers, isOurs = { now }, false
for i = 1, #ARGV / 3 do
  local lock, hold, ttl, told = KEYS[2 * i], ARGV[3 * i - 2], tonumber(ARGV[3 * i - 1]), ARGV[3 * i]
  -- A key of another type has another owner; the other locks of this call must still be renewed.
  local value = redis.pcall("GET", lock)
  local answer, left, waits, digit = TAKEN, 0, 0, 0
  if type(value) == "string" and sub(value, 38) == hold then
    isOurs, answer, left = true, RENEWED, call("PTTL", lock)
    if left < ttl then
      call("PEXPIRE", lock, ttl)
      left = ttl
    end
    digit = string.byte(value, 2) - 48
    -- In place, so the TTL stays.
    if told ~= "-" and told ~= sub(value, 2, 2)
        and type(redis.pcall("SETRANGE", lock, 1, told)) == "number" then
      digit = tonumber(told)
    end
    waits = call("EXISTS", KEYS[2 * i + 1])
  elseif not value then
    answer = GONE
  end
  table.insert(answers, answer)
  table.insert(answers, left)
  table.insert(answers, waits)
  table.insert(answers, digit)
end
if isOurs then
  local last = redis.pcall("GET", clock)
  -- Texts of 16 digits compare as numbers do. An unreadable value counts as absent, and one of another
  -- type stays as it is.
  local isLess = type(last) ~= "table"
    and not (last and #last == 16 and last >= text or (tonumber(last or 0) or 0) >= now)
  if type(last) == "table" or isLess and redis.pcall("SET", clock, text).err then
    answers[1] = 0
  end
end
return answers
