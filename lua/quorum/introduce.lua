-- A node identifies its server, before its first vote on a connection: how long its process has been
-- up, and which process it is.
--
-- KEYS  lock, clock; not touched
-- ARGV  1 channel   for releases; not used
-- RETURNS { uptime -1.., runId text, at µs }   uptime in whole seconds; -1: the node does not say
--         or an error that names the first right that the user lacks
-- INVARIANTS  Changes nothing. Without the check of the rights a script could fail at its second
--         write, for lack of one, and leave half of its work done.

local lock, clock = KEYS[1], KEYS[2]
for _, command in ipairs({
  { "TIME" }, { "INFO", "server" }, { "GET", lock }, { "GET", clock },
  { "SET", lock, "" }, { "SET", clock, "" },
  { "DEL", lock }, { "PTTL", lock }, { "PEXPIRE", lock, 1 }, { "PUBLISH", ARGV[1], "" },
}) do
  if redis.acl_check_cmd and not redis.acl_check_cmd(unpack(command)) then
    local what = string.lower(command[1]) .. " " .. (command[2] or "")
    return redis.error_reply("NOPERM the user of this connection may not run, in scripts: " .. what)
  end
end
local info = redis.call("INFO", "server")
local time = redis.call("TIME")
return {
  tonumber(string.match(info, "uptime_in_seconds:(%d+)") or -1),
  string.match(info, "run_id:(%w+)") or "",
  time[1] * 1000000 + time[2],
}
