-- Included by the first acquire of a connection: all commands in the scripts of the hand-off
-- protocol.
local function needed(channel)
  local lock, queue, clients, clock = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
  return {
    { "TIME" }, { "GET", lock }, { "GET", clock }, { "SET", lock, "" },
    { "SET", clock, "" }, { "GETSET", clock, "" },
    { "SETRANGE", lock, 1, "" },
    { "DEL", lock }, { "EXISTS", lock, queue }, { "PTTL", lock }, { "PTTL", queue }, { "PTTL", clients },
    { "PEXPIRE", lock, 1 }, { "PEXPIRE", queue, 1 }, { "PEXPIRE", clients, 1 }, { "ZADD", queue, 1, "" },
    { "ZADD", clients, 1, "" }, { "ZREM", queue, "" }, { "ZREM", clients, "" },
    { "ZPOPMIN", queue }, { "ZSCORE", queue, "" },
    { "ZSCORE", clients, "" }, { "ZMSCORE", clients, "" }, { "ZCARD", queue }, { "ZRANK", queue, "" },
    { "ZREVRANK", queue, "" }, { "ZRANGE", queue, 0, 0 }, { "ZREMRANGEBYRANK", queue, 0, 0 },
    { "ZREMRANGEBYSCORE", clients, 0, 0 }, { "PUBLISH", channel, "" }, { "PUBSUB", "NUMSUB", channel },
  }
end
