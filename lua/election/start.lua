-- Included first by the scripts of elections. The term of a leader is a hold of the lock, which is
-- handed over as any other.
--
-- lock     as in the hand-off: token at 4, hold at 38
-- leader   string: "1 <token> <number> <client id> <value>": token of the term at 3, 16 digits;
--          number of the proclamation at 20, 8 digits; then the leader. It may outlive its term: it
--          counts only while its token is the lock's
local call, sub = redis.call, string.sub
local lock, leader = KEYS[1], KEYS[2]
local value = call("GET", lock)
local said = call("GET", leader)
local token, number, rest
if value then
  token = sub(value, 4, 19)
end
if said then
  local of, count, words = string.match(said, "^1 (%d+) (%d+) (.*)$")
  if of == token then
    number, rest = tonumber(count), words
  end
end
