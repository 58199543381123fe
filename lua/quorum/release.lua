-- Ends a hold at one node: an unlock, a vote that is taken back, a force-release.
--
-- KEYS  lock, clock
-- ARGV  1 hold
--       2 channel   for releases; "": no client is woken
--       3 last      token of the hold, those reserved for local hand-offs included; 0 = none
-- RETURNS { RELEASED | GONE | TAKEN, clock 0.. }   clock: the last token of this node
-- INVARIANTS  Safe to send any number of times, at any time: a hold's id is never reused (R1). The
--         DEL comes first and is not refused by a full Redis; what follows cannot undo it (R5). It
--         wakes waiters even if the hold was not here: so every waiter is notified of a release by as
--         many nodes as received it.

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
-- This node may have missed the acquisition: its next token must be larger anyway.
if (tonumber(last) or 0) < tonumber(ARGV[3]) then
  redis.pcall("SET", clockKey, ARGV[3])
end
if ARGV[2] ~= "" and answer ~= TAKEN then
  redis.pcall("PUBLISH", ARGV[2], ARGV[1])
end
return { answer, last }
