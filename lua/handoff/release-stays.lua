-- Ends holds that nobody is inside of, and hands each lock to its first live waiter.
--
-- KEYS  clock, then for each of 1 to 100 holds: lock, queue, clients
-- ARGV  for each hold: hold
-- RETURNS for each hold: RELEASED, GONE or TAKEN
-- INVARIANTS  Touches no later hold. An error comes of the first write, with nothing done, or of a queue of another type: then
--         the holds before it have ended whole.
-- MODEL  `release` in proof/server.pml

-- @include start
clock = KEYS[1]
-- @include time
-- @include shared
local answers = {}
for i, hold in ipairs(ARGV) do
  lock, queue, clients = KEYS[3 * i - 1], KEYS[3 * i], KEYS[3 * i + 1]
  -- What was asked is about the clients of the lock before.
  receivers, kept, asked = {}, {}, 0
  local value = redis.pcall("GET", lock)
  if type(value) == "string" and sub(value, 38) == hold then
    handOver(call("ZPOPMIN", queue), sub(value, 21, 36))
    answers[i] = RELEASED
  else
    answers[i] = value and TAKEN or GONE
  end
end
return answers
