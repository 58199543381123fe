-- Ends idle holds, and hands each lock to its first live waiter.
--
-- KEYS  clock, then for each of 1 to 100 holds: lock, queue, clients
-- ARGV  for each hold: 1 hold   2 token
-- RETURNS { clock 0.., ...all { RELEASED | GONE | TAKEN } }   as release; clock: its last token
-- INVARIANTS  A second copy answers what the first did (RELEASED) if the lock was handed over; it
--         never touches a later hold. An error comes from the first write, with nothing done, or from
--         a queue of another type: then the holds before it have ended completely.
-- MODEL  `release` in proof/server.pml

-- @include start
clock = KEYS[1]
-- @include time
-- @include shared
local last = redis.pcall("GET", clock)
local answers = { type(last) == "string" and last or 0 }
for i = 1, #ARGV / 2 do
  local hold, token = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  lock, queue, clients = KEYS[3 * i - 1], KEYS[3 * i], KEYS[3 * i + 1]
  -- The remembered answers are about the clients of the previous lock.
  receivers, kept, asked = {}, {}, 0
  local value = redis.pcall("GET", lock)
  if type(value) == "string" and sub(value, 38) == hold then
    handOver(call("ZPOPMIN", queue), sub(value, 21, 36))
    table.insert(answers, RELEASED)
  elseif type(value) == "string" then
    -- As in ended.
    local since, owners = tonumber(sub(value, 21, 36)), tonumber(sub(value, 4, 19))
    table.insert(answers, since and owners and since <= token and token < owners and RELEASED or TAKEN)
  else
    table.insert(answers, value and TAKEN or GONE)
  end
end
return answers
