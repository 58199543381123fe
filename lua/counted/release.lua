-- Ends a hold, or leaves it fewer units, and grants what that frees to waiters.
--
-- KEYS  hash, queue, clients, clock
-- ARGV  1 hold
--       2 stays?     units that stay; left out: it ends
--       3 present?   its token now, local hand-offs included
-- RETURNS { RELEASED, more? 0|1 }   more: as in acquire; RELEASED alone: no caller is waiting
--         { GONE, clock 0.., more 0|1 }   clock: its last token
-- INVARIANTS  Safe to send twice, late, and in any order: units only shrink. The first write is one
--         that a full Redis does not refuse.
-- MODEL  `run_` with RELEASE in proof/counted-server.pml

-- @include start
-- @include ../handoff/time-text
local hold = ARGV[1]
local stored = call("HMGET", hash, "=", hold)
local books, field = stored[1], stored[2]
if not ARGV[2] and books and field and #text == 16 and call("EXISTS", queue) == 0 then
  -- @include common-release
end

local now = tonumber(text)
-- @include field
local stays, number, looks, queues = tonumber(ARGV[2] or 0), 0, false, false
-- @include books
-- @include shared
-- @include end
if isMine and units > stays then
  endHold(hold, mode, till, units, token, stays, ARGV[3], sub(stored[2], 42))
end
if heads[1] then
  advance(nil)
end
commit(false)
if isMine then
  return { RELEASED, more }
end
-- @include gone
