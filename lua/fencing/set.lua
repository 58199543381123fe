-- SET with a fence.
--
-- KEYS  key, fence
-- ARGV  value, ["PX", ttl ms,] fence's words (see check)
-- RETURNS as SET, or the errors of check
-- INVARIANTS  Nothing is written with a token that is smaller than the fence has seen.

-- @include check

return redis.call("SET", KEYS[1], unpack(ARGV))
