-- Raises the TTL of an RLock by a write in any case, so that a WAIT after it on the same connection
-- has something to wait for.
--
-- KEYS  lock
-- ARGV  1 hold   2 ttl ms
-- RETURNS { RENEWED | GONE | TAKEN, ttl ms }   ttl: 0 unless renewed; -1: the lock has no TTL
-- INVARIANTS  Never shortens a TTL.

if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then
  return { redis.call("EXISTS", KEYS[1]) == 0 and GONE or TAKEN, 0 }
end
local left = redis.call("PTTL", KEYS[1])
if left < 0 then
  redis.call("HSET", KEYS[1], ARGV[1], redis.call("HGET", KEYS[1], ARGV[1]))
  return { RENEWED, left }
end
local ttl = math.max(left, tonumber(ARGV[2]))
redis.call("PEXPIRE", KEYS[1], ttl)
return { RENEWED, ttl }
