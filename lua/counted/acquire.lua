-- Takes units of a counted resource, or queues for them.
--
-- KEYS  hash, queue, clients, clock
-- ARGV  1 hold        never used before
--       2 lease ms
--       3 not after   server time in µs after which this command is stale
--       4 mode        r, w or p
--       5 units       at least so many; 7 digits
--       6 permits     how many there are by the caller's code, 0 = as many as are stored; 7 digits
--       behind these only what differs: arguments at the end that are "" may be left out
--       7 passes      for how many of them tokens are reserved; "": 0
--       8 up to       so many units; "": as many as in 5
--       9 entry       made once for this hold, see start; "": it tries, and does not queue
--       10 label      of the caller, with a space before it; "": none. With a + before that: its
--                     client may keep the hold with nobody inside, and is to be told when somebody
--                     waits for it
--       11 nonce      of a try that asks idle holders to give their holds up; left out: none
-- RETURNS now µs, as text                                       OWNER: this is the token, it has as
--                                                                many units as in 5, nobody stands
--                                                                in the queue, and its client is
--                                                                not told
--         { OWNER, now µs, token, units, waits, more[, 1] }      waits: 1 = somebody stands in the
--                                                                queue; 1: its client is told
--         { MINE, now µs, token, units, waits, ttl ms, more }    it had them already
--         { HELD, now µs, ttl ms, place, more[, 2] }             2: some holders may have nobody
--                                                                inside; ttl: when the first place
--                                                                looks again, at the latest; place:
--                                                                0 = head, -1 = not queued
--         { STALE, now µs } { CROWDED, now µs }                  it got nothing, and does not stand
--                                                                in the queue because of
--         { DIFFERS, now µs, permits, more }                     this command; permits: 0 = nobody
--                                                                has said a number
--         more: 1 = there are more grants to be made than one script makes: advance
-- INVARIANTS  Nobody overtakes: what fits goes to those in the queue first. An end is only ever
--         raised. Writes for the caller itself start with one that a full Redis refuses, so that it
--         fails with nothing done.
-- MODEL  `run_` with QUEUE in proof/counted-server.pml

-- @include start
-- @include ../handoff/time-text
local hold, mode, upTo, entry = ARGV[1], ARGV[4], ARGV[8] or "", ARGV[9] or ""

-- RACE: a copy of an acquire that the network kept would own or queue a hold with which no caller
-- waits any more.
local isCommon = #text == 16 and #ARGV[3] == 16
if isCommon and text > ARGV[3] or not isCommon and tonumber(text) > tonumber(ARGV[3]) then
  return { STALE, tonumber(text) }
end

local now = tonumber(text)
local stored = call("HMGET", hash, "=", hold)
local books = stored[1]
-- The common way: it is new, nobody waits, and its client need not be told.
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
-- Behind "mine": what somebody has stays with it, whatever was said about the number since.
local isOther = permits == 0 or differs(asks, number)
if heads[1] and (goes or not isOther) then
  got, units = advance(not isOther and hold, lease)
end
local isFirst = not heads[1] or #out > 0 and call("ZCARD", queue) == #out
if isOther then
  -- A number from code is that of those that hold or wait. When the last of them was over, no
  -- caller is left that was told it.
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
    -- By the number of all holds: so there are never more that are told, and nobody counts them.
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
  return { OWNER, now, got, units, waits, more, isTold }
elseif usedUp then
  commit(false)
  -- @include ../no-token
  return noToken()
end

-- A try that asks does not queue where nobody could give up anything: it would close what readers share.
if entry ~= "" and (not nonce or tells == "+") then
  local added = redis.pcall("ZADD", queue, "NX", text, entry)
  if added == 1 then
    -- @include ../handoff/behind
    isQueued, wrote = true, true
  elseif not call("ZSCORE", queue, entry) then
    return added
  end
  -- A copy of the command that queued it finds it there, and leaves it where it is; also when Redis
  -- is full, and refuses it.
end
commit(false)
-- @include held
