-- Included by the acquire script of each protocol, which runs it for the first command of a connection: without it a
-- script could fail at its second write, for want of a right, and leave half of its work behind. Answers with an error
-- that names the first of these commands that the user may not run; with nothing when the user may run them all.
local function missingRight(commands)
  for _, command in ipairs(commands) do
    if not redis.acl_check_cmd(unpack(command)) then
      local what = string.lower(command[1]) .. " " .. (command[2] or "")
      return redis.error_reply("NOPERM the user of this connection may not run, in scripts: " .. what)
    end
  end
end
