-- Sets the hold count of a re-entered RLock, as Java's getHoldCount and HGETALL show it.
--
-- KEYS  1 the lock
-- ARGV  1 owner
--       2 count   at least 1
-- RETURNS RENEWED
--         GONE
--         TAKEN
-- INVARIANTS  Sets the count instead of adding to it, so that a second copy changes nothing.

if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 1 then
  redis.call("HSET", KEYS[1], ARGV[1], ARGV[2])
  return RENEWED
end
return redis.call("EXISTS", KEYS[1]) == 1 and TAKEN or GONE
