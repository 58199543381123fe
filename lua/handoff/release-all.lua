-- Ends the holds of several locks and hands each lock to its first live waiter.
--
-- KEYS  for each lock: lock, queue, waiters, clock (of one slot)
-- ARGV  for each lock: hold, its token
-- RETURNS for each lock: "released" | "gone" | "taken", last token of the clock (0 when it was not needed)
--         or "failed", the error; the error itself when every lock failed
-- INVARIANTS  A lock that cannot be released stops no other. Each of them as in release: a second copy answers what the first
--         did as long as the chain of hand-overs is unbroken, and never touches a later hold.

-- @include shared
-- @include several

local function release(hold, token)
  local holder, holdersToken, since = owner()
  if holder ~= hold then
    return ended(token, holdersToken, since)
  end
  handOver(since)
  return { "released", 0 }
end

local answers, failures, failure = {}, 0, nil
local count = #ARGV / 2
for i = 1, count do
  turnTo(i)
  local done, answer = pcall(release, ARGV[2 * i - 1], ARGV[2 * i])
  if not done then
    failures, failure = failures + 1, type(answer) == "table" and answer.err or answer
    answer = { "failed", failure }
  end
  answers[2 * i - 1], answers[2 * i] = answer[1], answer[2]
end
-- What stops all of them (READONLY, MISCONF, NOREPLICAS) must be seen as an error on the way: ioredis may reconnect for it.
if failures == count then
  return redis.error_reply(failure)
end
return answers
