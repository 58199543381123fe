-- Stores the result of a run, ends its hold, and tells the waiters.
--
-- KEYS  lock, queue, clients, clock, result, last
-- ARGV  1 hold   2 token   of the run
--       3 keep ms
--       4 state   v, u or x, see result
--       5 fingerprint   "-": none
--       6 json
--       7 late µs   until then, by the server's clock, it counts although the run has lost its hold; "":
--                   never
-- RETURNS { RELEASED, at µs }   stored then, perhaps by another copy of the command
--         TAKEN                 a newer run has its result stored, or runs: nothing was stored
--         GONE                  nothing was stored
-- INVARIANTS  A newer run's result replaces an older one's, never the reverse. A copy stores nothing: it
--         finds its own token in `last`. A late result tells no waiter, because the run under way will.
--         The first write of a run that is the owner is one that a full Redis does not refuse.
-- MODEL  `finish` in proof/remember-server.pml

-- @include ../handoff/start
-- @include ../handoff/time
local result, last, hold, token, keep = KEYS[5], KEYS[6], ARGV[1], ARGV[2], ARGV[3]
local value = call("GET", lock)
-- RACE: a late copy of `take` may have taken the lock once more for the same hold, with another token.
-- Its renewals have prolonged the time for being late, and a newer run may have come and gone.
local isHold = value and sub(value, 38) == hold
local isOwner = isHold and sub(value, 4, 19) == token
if not isOwner then
  local stored = call("GET", last)
  local newest = stored and sub(stored, 1, 16) or ""
  if newest == token then
    return { RELEASED, tonumber(sub(stored, 18)) }
  elseif newest > token then
    return TAKEN
  elseif isHold or ARGV[7] == "" or now > tonumber(ARGV[7]) then
    return value and TAKEN or GONE
  end
end
-- @include result
if isOwner then
  call("PEXPIRE", lock, call("PTTL", lock))
end
-- What holds the lock may be no run: its text must not become a part of the result.
local owner = value and not isOwner and string.match(value, "^1%d (%d+) ")
if not owner or #owner ~= 16 then
  owner = "0000000000000000"
end
-- Appended and not formatted: a format would end it at its first byte 0.
call("SET", result, "1" .. ARGV[4] .. " " .. token .. " " .. digits .. " " .. owner .. " " .. keep .. " "
  .. ARGV[5] .. " " .. ARGV[6], "PX", math.max(tonumber(keep), RESULT_TTL))
call("SET", last, token .. " " .. text, "PX", LATE_RESULT)
if isOwner then
  -- @include ../handoff/shared
  -- @include notify
end
return { RELEASED, now }
