-- A client publishes to itself: is it heard, and does the number of receivers prove anything?
--
-- KEYS  none; in Cluster one of the channel's slot, which is not touched
-- ARGV  1 channel   2 message
-- RETURNS the number of receivers, or the error that PUBLISH gave; 0 when nobody is counted before
-- it is published, as
--         grants are
-- INVARIANTS  Runs what the other scripts run, because an ACL or a proxy may treat it differently there.

local counted = redis.pcall("PUBSUB", "NUMSUB", ARGV[1])[2]
local receivers = redis.pcall("PUBLISH", ARGV[1], ARGV[2])
return counted == 0 and 0 or receivers
