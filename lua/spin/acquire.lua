-- Takes a spin lock when it is free: SET NX PX, and the answer to a second copy of it.
--
-- KEYS  1 the lock: string, value = owner
-- ARGV  1 owner   2 lease ms
--       3 notAfter ms   by the server's clock: after it this command is stale; 0 = unknown
--       4 first   1: the rights of the user were not checked yet
-- RETURNS { OWNER, at µs, token 0 }
--         { MINE, at µs, token 0, ttl ms }       it was the owner already
--         { HELD, at µs, ttl ms, place -1.. }    ttl: of the holder, -1: none
--         { STALE, at µs }
-- INVARIANTS  Another library's lock and this one exclude each other: the key is free or has an
--         owner. "Mine already" raises the TTL to the full lease and never shortens it (R2). A held
--         lock is only read, so it is reported as held also when Redis refuses writes. A key of
--         another type ends the script with WRONGTYPE before anything was written.

-- @include ../rights

-- A user that may take a lock, but may not release or renew it, must not take it: the lock would
-- stay until its TTL.
local missing = ARGV[4] == "1" and missingRight({
  { "TIME" }, { "GET", KEYS[1] }, { "SET", KEYS[1], "" }, { "DEL", KEYS[1] }, { "PTTL", KEYS[1] },
  { "PEXPIRE", KEYS[1], 1 },
})
if missing then
  return missing
end
local time = redis.call("TIME")
local nowMicros = time[1] * 1000000 + time[2]
-- A copy that the network delayed would lock for a caller that no longer waits.
if tonumber(ARGV[3]) > 0 and nowMicros / 1000 > tonumber(ARGV[3]) then
  return { STALE, nowMicros }
end
local owner, lease = ARGV[1], tonumber(ARGV[2])
local holder = redis.call("GET", KEYS[1])
if not holder then
  redis.call("SET", KEYS[1], owner, "NX", "PX", lease)
  return { OWNER, nowMicros, 0 }
end
local left = redis.call("PTTL", KEYS[1])
if holder ~= owner then
  return { HELD, nowMicros, left, -1 }
end
-- RACE: ioredis resends a command if the connection broke before its reply. The second copy finds
-- the key of the first one, and must recognise it as its own: otherwise the caller would wait for
-- itself.
if left < lease then
  redis.call("PEXPIRE", KEYS[1], lease)
  left = lease
end
return { MINE, nowMicros, 0, left }
