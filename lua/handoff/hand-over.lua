-- Included by release: the common way to hand over, which returns. `first` was popped: its time is not over, somebody is
-- subscribed to its channel, whatever that proves, and the clock has a token. All of it is judged
-- as in shared, which goes on with the same `first` where one of these is not so. That something is subscribed is asked
-- before anything is written.
local ttl, passes, hold = string.match(first[1], "^[01] ([1-9]%d*) (%d+) ([^ ]+)$")
if hold and #text == 16 and #ttl < 16 and #passes < 5 and string.byte(hold, -22) == 58 then
  local channel = sub(hold, 1, -23)
  if (now - first[2] <= ENTRY_TTL or now <= (tonumber(redis.pcall("ZSCORE", clients, "1" .. channel)) or 0))
    and redis.pcall("PUBSUB", "NUMSUB", channel)[2] ~= 0 then
    -- What stands in the clock may be of another type: an error here would lose the waiter that was popped.
    local last = redis.pcall("GETSET", clock, passes == "0" and text or string.format("%.0f", now + passes))
    -- @include token
    if token then
      call("SET", lock, "10 " .. token .. " " .. sub(value, 21, 37) .. hold, "PX", ttl)
      redis.pcall("PUBLISH", channel, "grant " .. token .. " " .. text .. " " .. ttl .. " " .. call("EXISTS", queue) .. " " .. hold .. " " .. lock)
      return RELEASED
    end
    if type(last) == "string" then
      call("SET", clock, last)
    end
  end
end
