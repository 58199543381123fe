-- Included by release: the common case of a hand-over, which returns. `first` was popped: its time
-- is not over, a client is subscribed to its channel, whatever that proves, and the clock has a
-- token. All of it is judged as in shared, which continues with the same `first` if one of these is
-- not so. The subscribers are counted before anything is written.
local ttl, passes, at = "3000", "0", 10
-- A fair lock's waiter with the usual window: a pattern costs more than this comparison.
if sub(first[1], 1, 9) ~= "1 3000 0 " then
  ttl, passes, at = string.match(first[1], "^[01] ([1-9]%d*) (%d+) ()")
end
-- A pattern that also matches the hold would cost half as much again.
local written = at and sub(first[1], at) or ""
local hold = sub(written, 1, (string.find(written, " ", 1, true) or 0) - 1)
if #text == 16 and string.byte(hold, -22) == 58 and #ttl < 16 and #passes < 5 then
  local channel = sub(hold, 1, -23)
  if (now - first[2] <= ENTRY_TTL or now <= (tonumber(redis.pcall("ZSCORE", clients, "1" .. channel)) or 0))
    and redis.pcall("PUBSUB", "NUMSUB", channel)[2] ~= 0 then
    -- An error here would lose the waiter that was popped.
    local token, try, most = nil, redis.pcall, TOKENS_AHEAD
    passes = passes ~= "0" and passes
    -- @include token
    if token then
      call("SET", lock, "10 " .. token .. " " .. sub(value, 21, 37) .. written, "PX", ttl)
      redis.pcall("PUBLISH", channel,
        "grant " .. token .. " " .. text .. " " .. ttl
          .. (call("EXISTS", queue) == 1 and " 1 " or " 0 ") .. hold .. " " .. lock)
      return RELEASED
    end
    if type(last) == "string" then
      call("SET", clock, last)
    end
  end
end
