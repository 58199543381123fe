-- Deletes the unlock latch of a request that was answered, as Redisson does after every unlock.
--
-- KEYS  1 the unlock latch
-- ARGV  none
-- RETURNS { count 0.. }   of deleted keys
-- INVARIANTS  Touches no other latch.

return redis.call("DEL", KEYS[1])
