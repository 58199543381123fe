-- Redisson's forceUnlock: deletes the lock and wakes every waiting process.
--
-- KEYS  1 the lock
-- ARGV  1 release channel
-- RETURNS { 1 = somebody held it }
-- INVARIANTS  The holder learns of it at its next renewal or unlock: the protocol has no message for it.

local held = redis.call("DEL", KEYS[1])
if held == 1 then
  redis.pcall("PUBLISH", ARGV[1], "0")
end
return { held }
