-- Included by acquire: all that the scripts of the hand-off protocol call.
local function needed(channel)
  local lock, queue, waiters, clock = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
  return {
    { "TIME" }, { "GET", lock }, { "GET", clock }, { "SET", lock, "" }, { "SET", clock, "" }, { "DEL", lock },
    { "EXISTS", queue }, { "PTTL", lock }, { "PTTL", queue }, { "PTTL", waiters }, { "PEXPIRE", lock, 1 },
    { "PEXPIRE", queue, 1 }, { "PEXPIRE", waiters, 1 }, { "ZADD", queue, 1, "" }, { "ZREM", queue, "" },
    { "ZPOPMIN", queue }, { "ZSCORE", queue, "" }, { "ZRANK", queue, "" }, { "ZRANGE", queue, 0, 0 },
    { "HGET", waiters, "" }, { "HSET", waiters, "", "" }, { "HDEL", waiters, "" }, { "PUBLISH", channel, "" },
    { "PUBSUB", "NUMSUB", channel },
  }
end
