-- Takes the lock, or queues for it.
--
-- KEYS  lock, queue, clients, clock; of a member of a multi-lock also the lock before it
-- ARGV  1 hold        never used before
--       2 lease ms
--       3 notAfter µs  by the server's clock: after it this command is stale
--       the rest only if they differ: at the end, "" and, of a number, 0 may be left out
--       4 entry?      made once for this hold, see start, up to the hold; "": it tries, and does not queue
--       5 told?       the digit that the lock gets, if the hold is the owner at once
--       6 passes?     local hand-offs for which tokens are reserved, if the hold is the owner at once;
--                     at most TOKENS_AHEAD if its token is not the server's time
--       7 before?     the hold that must own the lock before it; without such a lock, for a try with a
--                     nonce, the token of the holder that is asked, 16 digits, and no other; "": none,
--                     whichever it is
--       8 nonce?      of a try that asks an idle holder to release the lock; "": none
-- RETURNS { OWNER, at µs, token, waits 0|1 }                      waits: others are queued
--         { MINE, at µs, token, ttl ms, waits 0|1, told 0..2 }    it was the owner already
--         { HELD, at µs, ttl ms, place -1.., told 0..2 }          place: 0 = head, -1 = not queued; ttl,
--                                                                 told: of the holder
--         { STALE, at µs } { BLOCKED, at µs }                     nothing was done
--         usually in one word: at µs, as text: OWNER, this is the token, and the queue is empty; or
--         as number, HELD_PACKED + (not after - at) * 2^29 + ttl * 2^12 + (place + 1) * 2^2 + told:
--         HELD, if each of these fits
-- INVARIANTS  A free lock goes to the first live waiter before it goes to the caller. "Mine" raises
--         the TTL to the full lease, because the caller will count on it. Writes for the caller
--         itself start with one that a full Redis refuses, so that it fails with nothing done: that is
--         why EXISTS finds waiters, and not a ZPOPMIN that pops nothing.
--         A recall comes last, by pcall, and names nothing of the caller's.
-- MODEL  `acquire` in proof/server.pml

-- @include start
-- @include time-text
local hold, lease, entry, told, passes = ARGV[1], ARGV[2], ARGV[4], ARGV[5] or "0", ARGV[6]
if passes == "0" then
  passes = nil
end
if entry == "" then
  entry = nil
end

-- RACE: a copy of an acquire that the network delayed would own or queue a hold that no caller
-- waits for any more.
local isCommon = #text == 16 and #ARGV[3] == 16
if isCommon and text > ARGV[3] or not isCommon and tonumber(text) > tonumber(ARGV[3]) then
  return { STALE, tonumber(text) }
end

local isBlocked = KEYS[5] and sub(call("GET", KEYS[5]) or "", 38) ~= ARGV[7]

-- The common case: free, with an empty queue. A caller that would queue reads the lock at once,
-- because usually it is held.
local value = entry and call("GET", lock)
if isCommon and not value and not isBlocked
  and (entry and call("EXISTS", queue) or call("EXISTS", lock, queue)) == 0 then
  local token, try, most = nil, call, TOKENS_AHEAD
  -- @include token
  if token then
    call("SET", lock, "1" .. told .. " " .. token .. " " .. token .. " " .. hold, "PX", lease)
    if token == text then
      return text
    end
    return { OWNER, text, token, 0 }
  end
  call("SET", clock, last)
end

entry = entry and entry .. hold
value = value or call("GET", lock)
local nonce = ARGV[8] ~= "" and ARGV[8]
-- Converted to a number only for arithmetic.
local now = value and text or tonumber(text)
passes = passes or "0"
if value and sub(value, 38) == hold then
  -- @include mine
elseif isBlocked then
  -- A multi-lock that is stopped by a member holds no later one, not even for a moment: an
  -- unrelated caller would receive HELD for a lock without a holder, and two overlapping
  -- multi-locks could stop each other. After MINE: a copy of a command that won says so, whatever
  -- happened to the lock before it since. An idle holder is notified anyway: notifying it only at
  -- its member's turn would cost a round trip for each member.
  if nonce and value and sub(value, 1, 3) == "12 " then
    -- @include recall
  end
  return { BLOCKED, now }
elseif value then
  -- @include foreign
  -- RACE: the holder that was seen has released the lock, and another process caches it by now:
  -- that process must not be asked.
  if nonce and not KEYS[5] and ARGV[7] ~= "" and sub(value, 4, 19) ~= ARGV[7] then
    return { HELD, now, call("PTTL", lock), -1, 0 }
  end
end
-- @include free

told = value and string.byte(value, 2) - 48 or 0
local place = -1
-- A try that asks queues whatever the queue contains, so that no dead entry makes it report an idle
-- lock as busy; but not if a caller is inside, for which it would not wait.
if entry and (not nonce or told == 2) then
  local added = redis.pcall("ZADD", queue, "NX", text, entry)
  if added == 1 then
    -- @include behind
    place = count - 1
  else
    -- A copy of the command that queued the hold finds its entry, and leaves it in its place, even
    -- if Redis is full and refuses it.
    place = call("ZRANK", queue, entry)
    if not place then
      return added
    end
  end
end
left = left or call("PTTL", lock)
-- Only the first in the queue sends a recall: a holder that was notified of one waiter need not be
-- notified of the next.
if nonce and told == 2 or not nonce and place == 0 and told > 0 then
  -- @include recall
end
-- The common case is one number: a list costs the server, and its client, several times as much.
-- 2^53 is not reached: parsers of clients round integers close to it.
local early = ARGV[3] - now
if early < 8388607 and left >= 0 and left < 131072 and place < 1023 and told >= 0 and told < 3 then
  return HELD_PACKED + early * 536870912 + left * 4096 + (place + 1) * 4 + told
end
return { HELD, now, left, place, told }
