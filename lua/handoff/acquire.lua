-- Takes the lock, or queues for it.
--
-- KEYS  lock, queue, clients, clock; of a member of a multi-lock also the lock before it
-- ARGV  1 hold        never used before
--       2 lease ms
--       3 not after   server time in µs after which this command is stale
--       behind these only what differs: an argument at the end that is "" or, as a number, 0 may be left out
--       4 passes      for how many of them tokens are reserved, when the hold is the owner at once
--       5 told        the digit that the lock gets, when the hold is the owner at once
--       6 entry       made once for this hold, see start, up to the hold; "": it tries, and does not queue
--       7 the hold that must own the lock before it; without such a lock, of a try with a nonce,
--         the token of the holder that is asked, 16 digits: no other one is; "": none, whichever it
--         is
--       8 nonce of a try that asks an idle holder to give the lock up; "": none
-- RETURNS now µs, as text                                    OWNER, this is the token, and nobody
--                                                            stands in the queue
--         { OWNER, now µs, token, waits }                    waits: 1 = others stand in the queue
--         { MINE, now µs, token, ttl ms, waits, told }       it was the owner already
--         { HELD, now µs, holder's ttl ms, place, told }     place: 0 = head, -1 = not queued;
--                                                            told: of the holder
--         { STALE, now µs } { BLOCKED, now µs }              nothing was done
-- INVARIANTS  A free lock goes to the first live waiter before it goes to the caller. "Mine" raises
--         the TTL to the full lease, because the caller will count on it. Writes for the caller
--         itself start with one that a full Redis refuses, so that it fails with nothing done: so
--         it is EXISTS that tells of waiters, and not a ZPOPMIN that pops nothing.
--         A recall comes last, by pcall, and names nothing of the caller's.
-- MODEL  `acquire` in proof/server.pml

-- @include start
-- @include time-text
local hold, lease, passes, told, entry = ARGV[1], ARGV[2], ARGV[4], ARGV[5] or "0", ARGV[6]
if passes == "0" then
  passes = nil
end
if entry == "" then
  entry = nil
end

-- RACE: a copy of an acquire that the network kept would own or queue a hold with which no caller
-- waits any more.
local isCommon = #text == 16 and #ARGV[3] == 16
if isCommon and text > ARGV[3] or not isCommon and tonumber(text) > tonumber(ARGV[3]) then
  return { STALE, tonumber(text) }
end

local isBlocked = KEYS[5] and sub(call("GET", KEYS[5]) or "", 38) ~= ARGV[7]

-- The common way: free, and nobody waits. A caller that would queue reads the lock at once: mostly
-- it is held.
local value = entry and call("GET", lock)
if isCommon and not value and not isBlocked
  and (entry and call("EXISTS", queue) or call("EXISTS", lock, queue)) == 0 then
  local token, try = nil, call
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
-- A number only where it is reckoned with.
local now = value and text or tonumber(text)
passes = passes or "0"
if value and sub(value, 38) == hold then
  -- @include mine
elseif isBlocked then
  -- A multi-lock that is stopped by a member holds none behind it, not even for a moment: a
  -- stranger would be told HELD of a lock that nobody has, and two multi-locks that overlap could
  -- stop each other. Behind MINE: a copy of a command that won says so, whatever became of the lock
  -- before it since. An idle holder hears of it all the same: a holder that is told only when its
  -- turn comes costs a round trip for each member.
  if nonce and value and sub(value, 1, 3) == "12 " then
    -- @include recall
  end
  return { BLOCKED, now }
elseif value then
  -- @include foreign
  -- RACE: the holder that was seen has given the lock up, and another process keeps it by now: that
  -- one is not meant.
  if nonce and not KEYS[5] and ARGV[7] ~= "" and sub(value, 4, 19) ~= ARGV[7] then
    return { HELD, now, call("PTTL", lock), -1, 0 }
  end
end
-- @include free

told = value and string.byte(value, 2) - 48 or 0
local place = -1
-- A try that asks queues whatever the queue holds, so that no dead entry makes it say "busy" of an
-- idle lock; but not behind a holder with a caller inside, for which it would not wait.
if entry and (not nonce or told == 2) then
  local added = redis.pcall("ZADD", queue, "NX", text, entry)
  if added == 1 then
    -- @include behind
    place = count - 1
  else
    -- A copy of the command that queued it finds it there, and leaves it where it is; also when
    -- Redis is full, and refuses it.
    place = call("ZRANK", queue, entry)
    if not place then
      return added
    end
  end
end
left = left or call("PTTL", lock)
-- The first in the queue tells, and no other one: a holder that was told of one waiter need not
-- hear of the next.
if nonce and told == 2 or not nonce and place == 0 and told > 0 then
  -- @include recall
end
return { HELD, now, left, place, told }
