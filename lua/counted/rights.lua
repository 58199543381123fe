-- Included by the first acquire and the first re-check of a connection: all commands in the scripts
-- of the counted resources.
local function needed(channel)
  local hash, queue, clients, clock = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
  return {
    { "TIME" }, { "HGET", hash, "" }, { "HMGET", hash, "" }, { "HGETALL", hash },
    { "HSET", hash, "", "" }, { "HDEL", hash, "" },
    { "DEL", hash }, { "PTTL", hash }, { "PTTL", queue }, { "PTTL", clients },
    { "PEXPIRE", hash, 1 }, { "PEXPIRE", queue, 1 },
    { "PEXPIRE", clients, 1 }, { "PERSIST", hash }, { "EXISTS", hash, queue },
    { "ZRANGE", queue, 0, 0 }, { "ZRANK", queue, "" },
    { "ZREVRANK", queue, "" }, { "ZSCORE", queue, "" }, { "ZSCORE", clients, "" },
    { "ZMSCORE", clients, "" }, { "ZCARD", queue },
    { "ZADD", queue, 1, "" }, { "ZADD", clients, 1, "" }, { "ZREM", queue, "" }, { "ZREM", clients, "" },
    { "ZREMRANGEBYSCORE", clients, 0, 0 }, { "GET", clock }, { "SET", clock, "" },
    { "GETSET", clock, "" }, { "PUBLISH", channel, "" },
    { "PUBSUB", "NUMSUB", channel },
  }
end
