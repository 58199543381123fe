-- Stands inside of the critical section and writes down what it sees. Both languages run it, on the
-- way in and out.
--
-- KEYS  1 hash: inside, overlaps, backwards, token, visits of each side
-- ARGV  1 "in" or "out"   2 who   3 token, 0 for a lock without tokens
-- RETURNS how many are inside now

local inside = redis.call("HINCRBY", KEYS[1], "inside", ARGV[1] == "in" and 1 or -1)
if ARGV[1] == "out" then
  return inside
end
if inside ~= 1 then
  redis.call("HINCRBY", KEYS[1], "overlaps", 1)
end
local token = tonumber(ARGV[3])
if token > 0 then
  if token <= tonumber(redis.call("HGET", KEYS[1], "token") or 0) then
    redis.call("HINCRBY", KEYS[1], "backwards", 1)
  end
  redis.call("HSET", KEYS[1], "token", token)
end
redis.call("HINCRBY", KEYS[1], ARGV[2], 1)
return inside
