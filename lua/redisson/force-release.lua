-- Redisson's forceUnlock: deletes the lock and wakes every waiting process.
--
-- KEYS  1 the lock   2 for a fenced lock: the token counter
-- ARGV  1 channel   for releases
--       2 token     for a fenced lock: of the holder that is meant; "": whichever it is
--       3 owner     the same by its field in the hash; "": whichever it is
-- RETURNS { count 0..1 }   0: it was free, or had another holder than the one that is meant
-- INVARIANTS  The holder is notified at its next renewal or unlock: the protocol has no message for
--         it. The holder's token is the last one that was given.

if ARGV[2] ~= "" and redis.call("GET", KEYS[2]) ~= ARGV[2] then
  return { 0 }
end
if ARGV[3] ~= "" and redis.call("HEXISTS", KEYS[1], ARGV[3]) == 0 then
  return { 0 }
end
local held = redis.call("DEL", KEYS[1])
if held == 1 then
  redis.pcall("PUBLISH", ARGV[1], "0")
end
return { held }
