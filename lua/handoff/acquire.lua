-- Takes the lock, or a place in its queue, or looks again from that place.
--
-- KEYS  lock, queue, waiters, clock
-- ARGV  1 hold      a hold that was never used before ("again": the one that is queued)
--       2 lease     ms
--       3 notAfter  server time in ms after which this command is stale; 0 = unknown
--       4 mode      "try": once · "queue": queue when it is held · "again": a re-check, never queues
--       5 patience  ms until the queue entry may be skipped, when nobody moves its deadline
--       6 passes    local passes to reserve tokens for
--       7 channel   where the client listens, empty when it is not subscribed
--       8 entry     "<grant ttl> <local passes> <1 = receivers count> <channel>", empty for "try"
--       9...        other queued holds of this client whose deadlines move too
-- RETURNS { "owner", now µs, token, ttl ms, 1 = was mine already }
--         { "held", now µs, holder's ttl ms, position (0 = head, -1 = not queued) }
--         { "gone", now µs }    "again" only: neither queued nor mine; nothing was done
--         { "stale", now µs }   nothing was done
-- INVARIANTS  A free lock goes to the first live waiter before it goes to the caller. "Mine already" raises the TTL to
--         the full lease (R2), because the caller will count on it. Writes for the caller itself start with one that
--         a full Redis refuses, so that it fails with nothing done.

-- @include shared

local hold, lease, notAfter, mode, patience = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local passes, channel, entry = tonumber(ARGV[6]), ARGV[7], ARGV[8]

-- A copy of an acquire that the network kept would own or queue a hold that nobody waits for any more.
if notAfter > 0 and nowMs > notAfter then
  return { "stale", nowMicros }
end

local owner = redis.call("HMGET", lockKey, "hold", "token")
if owner[1] == hold then
  local ttl = raise(lease)
  return { "owner", nowMicros, tonumber(owner[2]), ttl, 1 }
end

-- A re-check whose entry is gone was granted and lost again meanwhile. Queueing it once more would let an old grant
-- message count for a new place, with a token below the previous holder's: the client goes on with a new hold.
if mode == "again" and not redis.call("ZSCORE", queueKey, hold) then
  return { "gone", nowMicros }
end

if not owner[1] then
  local head = redis.call("ZRANGE", queueKey, 0, 0)[1]
  local granted, ttl
  if head then
    granted, ttl = grantNext(nil, hold)
  end
  if not granted or granted == hold then
    return { "owner", nowMicros, own(hold, channel, lease, passes, nil), lease, 0 }
  end
  if mode ~= "try" then
    enqueue(hold, patience, entry)
  end
  return { "held", nowMicros, ttl, redis.call("ZRANK", queueKey, hold) or -1 }
end

if mode ~= "try" then
  enqueue(hold, patience, entry)
  for i = 9, #ARGV do
    local other = redis.call("HGET", waitersKey, ARGV[i])
    if other then
      redis.call("HSET", waitersKey, ARGV[i], (string.gsub(other, "^%d+", integer(nowMs + patience))))
    end
  end
end
return { "held", nowMicros, redis.call("PTTL", lockKey), redis.call("ZRANK", queueKey, hold) or -1 }
