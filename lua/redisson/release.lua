-- Redisson's last unlock of an RLock: the hold ends whatever its count, every waiting process is woken.
--
-- KEYS  1 the lock   2 the unlock latch of this request
-- ARGV  1 owner
--       2 channel   for releases
--       3 latch ms  that the latch lives
-- RETURNS RELEASED
--         GONE
--         TAKEN
-- INVARIANTS  The latch makes a second copy of the command answer what the first one did. DEL comes
--         first and is not refused by a full Redis; PUBLISH comes last and cannot undo it.

if redis.call("EXISTS", KEYS[2]) == 1 then
  return RELEASED
end
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then
  return redis.call("EXISTS", KEYS[1]) == 1 and TAKEN or GONE
end
redis.call("DEL", KEYS[1])
redis.call("SET", KEYS[2], 1, "PX", ARGV[3])
redis.pcall("PUBLISH", ARGV[2], "0")
return RELEASED
