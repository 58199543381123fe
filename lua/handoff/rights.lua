-- Included by acquire, which runs it for the first command of a client: without it a script could fail at its second
-- write, for want of a right, and leave half of its work behind. Names the first command that the user may not run.
local function missingRight(channel)
  local lock, queue, waiters, clock = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
  for _, command in ipairs({
    { "TIME" }, { "GET", lock }, { "GET", clock }, { "SET", lock, "" }, { "SET", clock, "" }, { "DEL", lock },
    { "EXISTS", queue }, { "PTTL", lock }, { "PTTL", queue }, { "PTTL", waiters }, { "PEXPIRE", lock, 1 },
    { "PEXPIRE", queue, 1 }, { "PEXPIRE", waiters, 1 }, { "ZADD", queue, 1, "" }, { "ZREM", queue, "" },
    { "ZPOPMIN", queue }, { "ZSCORE", queue, "" }, { "ZRANK", queue, "" }, { "ZRANGE", queue, 0, 0 },
    { "HGET", waiters, "" }, { "HSET", waiters, "", "" }, { "HDEL", waiters, "" }, { "PUBLISH", channel, "" },
    { "PUBSUB", "NUMSUB", channel },
  }) do
    if not redis.acl_check_cmd(unpack(command)) then
      return string.lower(command[1]) .. " " .. (command[2] or "")
    end
  end
end
