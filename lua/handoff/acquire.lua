-- Takes the lock, or a place in its queue, or looks again from that place.
--
-- KEYS  lock, queue, waiters, clock; for a try that belongs to a multi-lock also the lock before it
-- ARGV  1 hold   a hold that was never used before ("again": the one that is queued)
--       2 "<mode> <lease> <patience> <not after> <channel>"
--         mode: "try" once · "queue" when it is held · look "again", never queues
--         lease: ms · patience: ms until the queue entry may be skipped, when nobody moves its deadline
--         not after: server time in ms after which this command is stale; 0 = unknown
--         channel: where the rights of the user were not looked at yet, one such as grants are published to; else empty
--       3 entry  "<grant ttl> <local passes> <1 = receivers count> <channel>"; the channel is empty while the client
--         is not subscribed
--       4        with a lock before it: the hold that must own that one
--       4...     "again" only: other queued holds of this client whose deadlines move too
-- RETURNS { "owner", now µs, token, ttl ms, 1 = was mine already }
--         { "held", now µs, holder's ttl ms, position (0 = head, -1 = not queued) }
--         { "gone", now µs }    "again" only: neither queued nor mine; nothing was done
--         { "stale", now µs }   nothing was done
--         { "blocked", now µs } the lock before it has another owner, or none; nothing was done
-- INVARIANTS  A free lock goes to the first live waiter before it goes to the caller. "Mine already" raises the TTL to
--         the full lease (R2), because the caller will count on it. Writes for the caller itself start with one that
--         a full Redis refuses, so that it fails with nothing done.
-- MODEL  `acquire` in proof/server.pml

-- @include shared
-- @include rights
-- @include ../rights

local hold, entry = ARGV[1], ARGV[3]
local mode, lease, patience, notAfter, unlooked = string.match(ARGV[2], "^(%a+) (%d+) (%d+) (%d+) ?(.*)$")
local passes, channel = string.match(entry, "^%d+ (%d+) [01] (.*)$")

local missing = unlooked ~= "" and missingRight(needed(unlooked))
if missing then
  return missing
end
tellTime()

-- A copy of an acquire that the network kept would own or queue a hold that nobody waits for any more.
if notAfter ~= "0" and nowMs > tonumber(notAfter) then
  return { "stale", nowMicros }
end

local holder, token = owner()
if holder == hold then
  return { "owner", nowMicros, token, raise(lease), 1 }
end

-- A multi-lock that is stopped by a member holds none behind it, not even for a moment: a stranger would be told "held" of a
-- lock that nobody has, and two multi-locks that overlap could stop each other. Behind "mine already": a copy of a command
-- that won says so, whatever became of the lock before it since.
if KEYS[5] and string.match(call("GET", KEYS[5]) or "", "^%S*") ~= ARGV[4] then
  return { "blocked", nowMicros }
end

-- A re-check whose entry is gone was granted and lost again meanwhile. Queueing it once more would let an old grant
-- message count for a new place, with a token below the previous holder's: the client goes on with a new hold.
local isWaitedFor = holder or call("EXISTS", queueKey) == 1
local isQueued = isWaitedFor and mode ~= "try" and call("ZSCORE", queueKey, hold)
if mode == "again" and not isQueued then
  return { "gone", nowMicros }
end

-- A free lock belongs to whoever waits.
local left
if not holder then
  local granted
  if isWaitedFor then
    granted, left = grantNext(nil, hold)
  end
  if not granted or granted == hold then
    -- Where the next waiter gets no token, nobody does: one with fewer passes would overtake.
    local mine = not usedUp and own(hold, channel, lease, passes, nil)
    if not mine then
      return noToken()
    end
    return { "owner", nowMicros, mine, lease, 0 }
  end
end

-- A copy of the command that queued it finds it there, and leaves it where it is.
if isQueued then
  keep(hold, patience, entry, channel)
elseif mode == "queue" then
  enqueue(hold, patience, entry)
end
for i = KEYS[5] and 5 or 4, #ARGV do
  local other = call("HGET", waitersKey, ARGV[i])
  if other then
    call("HSET", waitersKey, ARGV[i], (string.gsub(other, "^%d+", integer(nowMs + patience))))
  end
end
return { "held", nowMicros, left or call("PTTL", lockKey), call("ZRANK", queueKey, hold) or -1 }
