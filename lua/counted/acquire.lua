-- Takes units of a counted resource, or queues for them.
--
-- KEYS  hash, queue, clients, clock
-- ARGV  1 hold        never used before
--       2 lease ms
--       3 notAfter µs  by the server's clock: after it this command is stale
--       4 mode        r, w or p
--       5 units       at least this many; 7 digits
--       6 permits     how many exist by the caller's code, 0 = as many as are stored; 7 digits
--       the rest only if they differ: at the end, "" and, of a number, 0 may be left out
--       7 passes?     local hand-offs for which tokens are reserved; "": 0
--       8 upTo?       this many units; "": as many as in 5
--       9 entry?      made once for this hold, see start; "": it tries, and does not queue
--       10 label?     of the caller, with a space before it; "": none. With a + before that: its
--                     client may cache the hold, and wants to be notified when another caller waits
--       11 nonce?     of a try that asks idle holders to release their holds; "": none
-- RETURNS { OWNER, at µs, token, units 0.., waits 0|1, more 0|1, told? 0|1, other? 0.. }
--         { MINE, at µs, token, units 0.., waits 0|1, ttl ms, more 0|1 }   it had them already
--         { HELD, at µs, ttl ms, place -1.., more 0|1, idle? 0..2, other? 0.. }
--         { DIFFERS, at µs, permits 0.., more 0|1 }                        permits: 0 = not set
--         { STALE, at µs } { CROWDED, at µs }
--         after these three it got nothing, and this command has not queued it
--         waits: a caller is queued; told: its client is notified; idle: 2 = some holders may be
--         ttl of HELD: when the first place must re-check; place: 0 = head, -1 = not queued
--         other: set-permits has stored this number, not that of 6
--         more: more grants are due than one script makes: send advance
--         usually in one word: at µs, as text: OWNER, this is the token, the hold has the units of 5,
--         the queue is empty, and its client is not notified
-- INVARIANTS  No caller overtakes: units go to the queue first. An end is only ever raised. Writes
--         for the caller itself start with one that a full Redis refuses, so that it fails with
--         nothing done.
-- MODEL  `run_` with QUEUE in proof/counted-server.pml

-- @include start
-- @include ../handoff/time-text
local hold, mode, upTo, entry = ARGV[1], ARGV[4], ARGV[8] or "", ARGV[9] or ""

-- RACE: a copy of an acquire that the network delayed would own or queue a hold that no caller
-- waits for any more.
local isCommon = #text == 16 and #ARGV[3] == 16
if isCommon and text > ARGV[3] or not isCommon and tonumber(text) > tonumber(ARGV[3]) then
  return { STALE, tonumber(text) }
end

local now = tonumber(text)
local stored = call("HMGET", hash, "=", hold)
local books = stored[1]
-- The common case: the hold is new, no caller is queued, and its client needs no notification.
if isCommon and not stored[2] and upTo == "" and sub(ARGV[10] or "", 1, 1) ~= "+"
  and call("EXISTS", hash, queue) == (books and 1 or 0) then
  -- @include common-acquire
end

-- @include field
local lease = tonumber(ARGV[2])
local asks, number, joins = tonumber(ARGV[5]), tonumber(ARGV[6]), false
upTo = tonumber(upTo) or asks
local looks, queues, nonce = false, false, ARGV[11]
-- @include books
-- @include shared
if isMine then
  -- @include mine
end

local got, units, isTold
-- After "mine": a holder keeps its units, even if the number of permits has changed since.
local isOther = permits == 0 or differs(asks, number)
if heads[1] and (goes or not isOther) then
  got, units = advance(not isOther and hold, lease)
end
local isFirst = not heads[1] or #out > 0 and call("ZCARD", queue) == #out
if isOther then
  -- A number from code is that of the present holders and waiters. After the last of them has
  -- ended, no caller relies on it.
  if not isFirst or used > 0 or source == "s" or asks > number then
    commit(false)
    return { DIFFERS, now, isKnown and permits or 0, more }
  end
  permits = number
end
if not got and not usedUp and isFirst and asks <= permits - used then
  if holds >= MOST_HOLDS then
    commit(false)
    return { CROWDED, now }
  end
  units = math.min(math.max(asks, upTo), permits - used)
  local label = ARGV[10] or ""
  if sub(label, 1, 1) == "+" then
    -- Limited by the number of all holds, so there are never more notified ones, and they need no
    -- count.
    if holds < MOST_TOLD then
      tells, isTold = "+", 1
    else
      label = sub(label, 2)
    end
  end
  got = own(hold, ARGV[4], units, lease, tonumber(ARGV[7]) or 0, label)
end
if got then
  local waits = commit(true)
  return { OWNER, now, got, units, waits, more, isTold or other and 0, other }
elseif usedUp then
  commit(false)
  -- @include ../no-token
  return noToken()
end

-- A try that asks does not queue if no holder could release: it would close the readers' shared
-- hold.
if entry ~= "" and (not nonce or tells == "+") then
  local added = redis.pcall("ZADD", queue, "NX", text, entry)
  if added == 1 then
    -- @include ../handoff/behind
    isQueued, wrote = true, true
  elseif not call("ZSCORE", queue, entry) then
    return added
  end
  -- A copy of the command that queued the hold finds its entry, and leaves it in its place, even if
  -- Redis is full and refuses it.
end
commit(false)
-- @include held
