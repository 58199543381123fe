-- Ends a hold at one node: an unlock, a vote that is taken back, a release by force.
--
-- KEYS  lock, clock
-- ARGV  1 hold   2 release channel; empty: nobody is woken   3 the last token of the hold, passes
--                                                            included; 0 = none
-- RETURNS { RELEASED | GONE | TAKEN, last token of this node }
-- INVARIANTS  Safe to send any number of times, at any time: a hold's id is never used again (R1).
--         The DEL comes first and is not refused by a full Redis; what follows cannot undo it (R5).
--         Wakes also where the hold was not: so every waiter hears of a release from as many nodes
--         as have heard of it.

local lockKey, clockKey = KEYS[1], KEYS[2]
local value = redis.call("GET", lockKey)
local answer = GONE
if value then
  answer = TAKEN
  if string.match(value, "^%S+") == ARGV[1] then
    redis.call("DEL", lockKey)
    answer = RELEASED
  end
end
local last = redis.call("GET", clockKey) or "0"
-- This node may have missed the acquisition: its next token must be larger all the same.
if (tonumber(last) or 0) < tonumber(ARGV[3]) then
  redis.pcall("SET", clockKey, ARGV[3])
end
if ARGV[2] ~= "" and answer ~= TAKEN then
  redis.pcall("PUBLISH", ARGV[2], ARGV[1])
end
return { answer, last }
