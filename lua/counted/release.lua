-- Ends a hold, or leaves it fewer units, and grants what that frees to waiters.
--
-- KEYS  hash, queue, clients, clock
-- ARGV  1 hold   2 units that stay   3 its token now, local hand-offs included; without 2 and 3 it ends
-- RETURNS RELEASED                    no caller is waiting
--         { RELEASED, more }          more: as in acquire
--         { GONE, last token of the clock, more }
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
