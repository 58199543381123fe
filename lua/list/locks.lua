-- Shows the holders and the waiters of several locks, elections or runs, for `locks.list()`: as many as can
-- be read in a short time.
--
-- KEYS  of each lock: lock, queue
-- ARGV  1 most   as many waiters of each
-- RETURNS { at µs, ...all { seen { hold? text, token? 0.., remaining? ms, told? 0..2,
--                                  ...waiters { hold text, ticket 0.. } } } }
--         for each lock, as handoff/inspect; {} if the keys have another type or format. After 1 000
--         waiters the answer ends: the caller asks for the remaining locks.
-- INVARIANTS  Changes nothing. Nothing in one key hides the other locks.

local call, pcall, sub = redis.call, redis.pcall, string.sub
-- @include ../handoff/time
local read = 0

local function look(lock, queue)
  local shown = { "", 0, 0, 0 }
  local value = pcall("GET", lock)
  if type(value) == "table" then
    return {}
  end
  if value then
    -- @include ../handoff/foreign
    shown = { sub(value, 38), sub(value, 4, 19), call("PTTL", lock), string.byte(value, 2) - 48 }
  end
  local entries = pcall("ZRANGE", queue, 0, ARGV[1] - 1, "WITHSCORES")
  -- @include ../handoff/waiting
  read = read + #entries / 2
  return entries.err and {} or shown
end

local all = { now }
for i = 1, #KEYS, 2 do
  local shown = look(KEYS[i], KEYS[i + 1])
  table.insert(all, shown.err and {} or shown)
  if read >= 1000 then
    break
  end
end
return all
