-- A client publishes to itself: is it heard, and does the number of receivers prove anything?
--
-- KEYS  none; in Cluster one of the channel's slot, which is not touched
-- ARGV  1 channel   2 message
-- RETURNS the number of receivers, or the error that PUBLISH gave
-- INVARIANTS  Runs PUBLISH as the other scripts do, because an ACL or a proxy may treat it differently there.

return redis.pcall("PUBLISH", ARGV[1], ARGV[2])
