-- Redisson's tryLock on a plain RLock, or on an RFencedLock.
--
-- KEYS  1 the lock: hash, field = owner, value = hold count
--       with ARGV 5: the token counter   with ARGV 4: an unlock latch, which is not touched; the last key
-- ARGV  1 owner   2 lease ms
--       3 notAfter ms   by the server's clock: after it this command is stale; 0 = unknown
--       4 channel   for releases, if the rights of the user were not checked yet; else ""
--       5 fenced    "fenced": a change of holder takes the next number of the token counter; else ""
-- RETURNS { OWNER, at µs, token 0.. }                        token: 0 = not fenced
--         { MINE, at µs, token 0.., ttl ms }                 it was the owner already
--         { HELD, at µs, ttl ms, place -1.., holder text }   ttl: of the holder, -1: none
--         { STALE, at µs }
-- INVARIANTS  Differs from Redisson's script only where no client can see it: the count is set, not
--         incremented, so that a command sent twice by a reconnect does not count as a re-entry (an
--         owner id is used for one acquisition); it takes no second token either; and a TTL is never
--         shortened. The first write is one that a full Redis refuses, so that it fails with nothing
--         done but, if Redis is not full, an unused token.

-- @include ../rights

local tokenKey = ARGV[5] == "fenced" and KEYS[2]
if ARGV[4] ~= "" then
  local lock, latch, channel = KEYS[1], KEYS[#KEYS], ARGV[4]
  local commands = {
    { "TIME" }, { "EXISTS", lock }, { "PTTL", lock }, { "PEXPIRE", lock, 1 }, { "DEL", lock },
    { "HEXISTS", lock, "" }, { "HKEYS", lock }, { "HSET", lock, "", "" },
    { "SET", latch, "" }, { "PUBLISH", channel, "" },
  }
  if tokenKey then
    table.insert(commands, { "GET", tokenKey })
    table.insert(commands, { "INCR", tokenKey })
  end
  local missing = missingRight(commands)
  if missing then
    return missing
  end
end
local time = redis.call("TIME")
local nowMicros = time[1] * 1000000 + time[2]
if tonumber(ARGV[3]) > 0 and nowMicros / 1000 > tonumber(ARGV[3]) then
  return { STALE, nowMicros }
end
local owner, lease = ARGV[1], tonumber(ARGV[2])
local mine = redis.call("HEXISTS", KEYS[1], owner) == 1
if not mine and redis.call("EXISTS", KEYS[1]) == 1 then
  return { HELD, nowMicros, redis.call("PTTL", KEYS[1]), -1, redis.call("HKEYS", KEYS[1])[1] }
end

-- While our field exists no other client takes a token, so the last one is ours; unless the counter
-- was deleted.
local token = 0
if tokenKey then
  token = tonumber(mine and redis.call("GET", tokenKey) or redis.call("INCR", tokenKey)) or 0
  if token < 1 or token > 9007199254740991 then
    return redis.error_reply("ERR the token counter is not from 1 to 2^53-1: " .. tokenKey)
  end
end
if not mine then
  redis.call("HSET", KEYS[1], owner, 1)
  redis.call("PEXPIRE", KEYS[1], lease)
  return { OWNER, nowMicros, token }
end
local left = redis.call("PTTL", KEYS[1])
if left >= 0 and left < lease then
  redis.call("PEXPIRE", KEYS[1], lease)
  left = lease
end
return { MINE, nowMicros, token, left }
