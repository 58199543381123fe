-- Redisson's tryLock on a plain RLock.
--
-- KEYS  1 the lock: hash, field = owner, value = hold count   2 with ARGV 4: an unlock latch, which is not touched
-- ARGV  1 owner   2 lease ms   3 notAfter: server time in ms after which this command is stale; 0 = unknown
--       4 the release channel, where the rights of the user were not looked at yet; else empty
-- RETURNS { "owner", now µs, 0, ttl ms, 1 = was mine already }
--         { "held", now µs, holder's ttl ms (-1: none), -1 }
--         { "stale", now µs }
-- INVARIANTS  Differs from Redisson's script where nobody can see it: the count is set, not incremented, so that a
--         command sent twice by a reconnect does not count as a re-entry (an owner id is used for one acquisition);
--         and a TTL is never shortened.

-- A script that fails at its second write, for want of a right, would leave a lock without a TTL.
if ARGV[4] ~= "" then
  for _, command in ipairs({
    { "TIME" }, { "EXISTS", KEYS[1] }, { "PTTL", KEYS[1] }, { "PEXPIRE", KEYS[1], 1 }, { "DEL", KEYS[1] },
    { "HEXISTS", KEYS[1], "" }, { "HSET", KEYS[1], "", "" }, { "SET", KEYS[2], "" }, { "PUBLISH", ARGV[4], "" },
  }) do
    if not redis.acl_check_cmd(unpack(command)) then
      local what = string.lower(command[1]) .. " " .. (command[2] or "")
      return redis.error_reply("NOPERM the user of this connection may not run, in scripts: " .. what)
    end
  end
end
local time = redis.call("TIME")
local nowMicros = time[1] * 1000000 + time[2]
if tonumber(ARGV[3]) > 0 and nowMicros / 1000 > tonumber(ARGV[3]) then
  return { "stale", nowMicros }
end
local owner, lease = ARGV[1], tonumber(ARGV[2])
local mine = redis.call("HEXISTS", KEYS[1], owner) == 1
if not mine and redis.call("EXISTS", KEYS[1]) == 1 then
  return { "held", nowMicros, redis.call("PTTL", KEYS[1]), -1 }
end
if not mine then
  redis.call("HSET", KEYS[1], owner, 1)
  redis.call("PEXPIRE", KEYS[1], lease)
  return { "owner", nowMicros, 0, lease, 0 }
end
local left = redis.call("PTTL", KEYS[1])
if left >= 0 and left < lease then
  redis.call("PEXPIRE", KEYS[1], lease)
  left = lease
end
return { "owner", nowMicros, 0, left, 1 }
