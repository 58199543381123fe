-- Included first by the scripts of jobs that run at most once per interval.
--
-- turn     string: "1r <begin> <hold>" while it runs, "1d <begin>" when it is done: the format at
--          1, the state at 2; begin at 4: when it began, the server's time in µs, 16 digits; hold
--          at 21. Running it expires with the lease, done at the end of the longest interval that a
--          caller has given since. A finished turn names no hold, so no late renewal can keep it
local call, sub = redis.call, string.sub
local turn, hold = KEYS[1], ARGV[1]
local value = call("GET", turn)
if value and not string.match(value, "^1[rd] %d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d") then
  if string.match(value, "^[02-9]%l ") then
    return redis.error_reply("LOCKFORMAT " .. sub(value, 1, 1))
  end
  return redis.error_reply("WRONGTYPE The key of the turn holds something else")
end
local isRunning, begin = value and sub(value, 2, 2) == "r", value and sub(value, 4, 19)
local isMine = isRunning and sub(value, 21) == hold

-- ms until the end of the turn that began then: by the clock's slots, or counted from the beginning,
-- and never longer than a turn, also after a step of the clock.
local function untilEnd(begin, now, every, aligned)
  local passed = now - (aligned and begin - begin % (every * 1000) or begin)
  return math.min(math.ceil(every - passed / 1000), every)
end
