-- Included by the acquire script of each protocol, which runs it for the first command of a
-- connection: otherwise a script could fail at its second write for lack of a right, with half of
-- its work done. Returns an error that names the first of these commands that the user may not run;
-- nothing if the user may run them all.
-- Redis 6.2 cannot check ahead. It has no sharded messages either, so in Cluster a lock would be
-- handed to a waiter that receives no message: it is refused, before the first lock is taken.
local function missingRight(commands)
  for _, command in ipairs(commands) do
    if not redis.acl_check_cmd then
      if command[1] == "SPUBLISH" then
        return redis.error_reply(
          "ERR unsupported: in Cluster this lock needs Redis 7.0 or later, for sharded messages"
        )
      end
    elseif not redis.acl_check_cmd(unpack(command)) then
      local what = string.lower(command[1]) .. " " .. (command[2] or "")
      return redis.error_reply("NOPERM the user of this connection may not run, in scripts: " .. what)
    end
  end
end
