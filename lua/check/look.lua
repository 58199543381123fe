-- What a server says about itself, for `locks.check()`.
--
-- KEYS  none
-- ARGV  none
-- RETURNS { now µs, INFO server, INFO memory, INFO replication }; "" for what the user may not ask
-- INVARIANTS  Changes nothing.

local function info(section)
  local text = redis.pcall("INFO", section)
  return type(text) == "string" and text or ""
end

local time = redis.call("TIME")
return { time[1] * 1000000 + time[2], info("server"), info("memory"), info("replication") }
