-- Answers what is remembered, or takes the right to run, or queues for it.
--
-- KEYS  lock, queue, clients, clock, result
-- ARGV  1 hold        2 lease ms   3 notAfter µs   4 entry   as in handoff/acquire
--       5 seen        the token of the first run that its caller has waited for; "": none
-- RETURNS { KEPT, at µs, token, rest ms, result text }    rest: for how long new callers get it; 0: only
--                                                         callers that have waited
--         { OWNER, at µs, token, waits 0|1 }                      as in handoff/acquire
--         { MINE, at µs, token, ttl ms, waits 0|1, told 0..2 }
--         { HELD, at µs, ttl ms, place -1.., told 0..2, token }   token: of the run under way
--         { STALE, at µs }
-- INVARIANTS  A result ends the hold: its entry goes, and the lock if it was the owner, by a grant that
--         came after the result. A free lock goes to the first live waiter before it goes to the caller.
--         Writes begin with one that a full Redis does not refuse.
-- MODEL  `take` in proof/remember-server.pml

-- @include ../handoff/start
-- @include ../handoff/time
local result, hold, lease, entry, told, passes = KEYS[5], ARGV[1], ARGV[2], ARGV[4], "0", 0
entry = entry ~= "" and entry .. hold or nil
-- RACE: a copy that the network has delayed would run or queue for no caller.
if now > tonumber(ARGV[3]) then
  return { STALE, now }
end
-- @include result
local value = call("GET", lock)
local isOwner = value and sub(value, 38) == hold
local isFor = rest > 0 or found and ARGV[5] ~= "" and tonumber(sub(found, 4, 19)) >= tonumber(ARGV[5])
-- RACE: the caller's run is under way, and an older run has brought its result late. A copy of the
-- command that began the run must not end it: another body would run beside it.
if isFor and not (isOwner and sub(found, 38, 53) == sub(value, 4, 19)) then
  if entry then
    call("ZREM", queue, entry)
  end
  if isOwner then
    -- @include ../handoff/shared
    -- @include notify
  end
  return { KEPT, now, sub(found, 4, 19), math.max(0, rest), found }
end
if isOwner then
  -- @include ../handoff/mine
elseif value then
  -- @include ../handoff/foreign
end
-- @include ../handoff/free

local place = -1
if entry then
  if call("ZADD", queue, "NX", text, entry) == 1 then
    -- @include ../handoff/behind
    place = count - 1
  else
    place = call("ZRANK", queue, entry)
  end
end
value = value or call("GET", lock)
return { HELD, now, left or call("PTTL", lock), place, string.byte(value, 2) - 48, sub(value, 4, 19) }
