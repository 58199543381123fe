-- What a server says about itself, for `locks.check()`.
--
-- KEYS  none
-- ARGV  none
-- RETURNS as INFO, after the time: { now µs, server, clients, memory, persistence, replication }; ""
--         for what the user may not read
-- INVARIANTS  Changes nothing.

local function info(section)
  local text = redis.pcall("INFO", section)
  return type(text) == "string" and text or ""
end

local time = redis.call("TIME")
return {
  time[1] * 1000000 + time[2], info("server"), info("clients"), info("memory"), info("persistence"),
  info("replication")
}
