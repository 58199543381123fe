-- A client publishes to itself: does the message arrive, and is the number of receivers reliable?
--
-- KEYS  none; in Cluster one of the channel's slot, which is not touched
-- ARGV  1 channel   2 message
-- RETURNS { count 0.. }   of receivers, 0 if none is counted before the message is published, in the way
--         that grants are; or the error of PUBLISH
-- INVARIANTS  Runs the commands of the other scripts, because an ACL or a proxy may treat them
--         differently inside a script.

local counted = redis.pcall("PUBSUB", "NUMSUB", ARGV[1])[2]
local receivers = redis.pcall("PUBLISH", ARGV[1], ARGV[2])
return counted == 0 and 0 or receivers
