-- Takes several locks, each with a hold and a token of its own, or none of them.
--
-- KEYS  for each lock: lock, queue, waiters, clock (of one slot, so the clock is the same)
-- ARGV  1 "<lease> <not after> <channel>"   as in acquire
--       2 channel   where the client listens; empty while it is not subscribed
--       3... a hold for each lock, never used before
-- RETURNS { "owner", now µs, ttl ms, token... }
--         { "held", now µs, index }     the first lock, from 1, that somebody holds; nothing was done
--         { "queued", now µs, index }   none is held, but for this one a queue stands; nothing was done
--         { "gone", now µs }            a copy: some of the holds own their locks, others do not any more; nothing was done
--         { "stale", now µs }           later than not after; nothing was done
-- INVARIANTS  Looks at all before it writes anything, and the first write is one that a full Redis refuses (R5): whatever
--         stops it has left nothing. A free lock that somebody may wait for is not taken: only acquire can tell whether he
--         still lives, and gives it to him. "Mine already" raises the TTLs to the full lease (R2).

-- @include shared
-- @include several
-- @include rights
-- @include ../rights

local lease, notAfter, unlooked = string.match(ARGV[1], "^(%d+) (%d+) ?(.*)$")
local channel, count = ARGV[2], #ARGV - 2

local missing = unlooked ~= "" and missingRight(needed(unlooked))
if missing then
  return missing
end
tellTime()

-- A copy that the network kept would own locks that nobody wants any more.
if notAfter ~= "0" and nowMs > tonumber(notAfter) then
  return { "stale", nowMicros }
end

local answer = { "owner", nowMicros, lease }
local mine, held, queued = 0, nil, nil
for i = 1, count do
  turnTo(i)
  local holder, token = owner()
  if holder == ARGV[i + 2] then
    mine = mine + 1
    answer[i + 3] = token
  elseif holder then
    held = held or i
  elseif call("EXISTS", queueKey) == 1 then
    queued = queued or i
  end
end

-- A copy of a command that was executed. What it took then and lost meanwhile must not be taken again.
if mine == count then
  for i = 1, count do
    turnTo(i)
    raise(lease)
  end
  return answer
elseif mine > 0 then
  return { "gone", nowMicros }
elseif held or queued then
  return { held and "held" or "queued", nowMicros, held or queued }
end

for i = 1, count do
  turnTo(i)
  local token = own(ARGV[i + 2], channel, lease, 0, nil)
  if not token then
    for j = 1, i - 1 do
      turnTo(j)
      call("DEL", lockKey)
    end
    return noToken()
  end
  answer[i + 3] = token
end
return answer
