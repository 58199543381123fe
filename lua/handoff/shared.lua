-- Included by the scripts of the hand-off protocol that may change the holder. docs/protocol.md tells the whole.
--
-- lock     hash, expires with the hold: hold, token, since, channel
--          since = token of the first hold of the unbroken chain of releases, yields and leaves
--          channel = where the holder's client listens, empty when it is not subscribed
-- queue    sorted set: waiting hold -> ticket
-- waiters  hash: waiting hold -> "<deadline ms> <grant ttl ms> <local passes> <1 = receivers count> <channel>"
-- clock    string: the last fencing token given, passes included; the only key without a TTL
local lockKey, queueKey, waitersKey, clockKey = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

-- R5: TIME stands before every write.
local time = redis.call("TIME")
local nowMicros = time[1] * 1000000 + time[2]
local nowMs = math.ceil(nowMicros / 1000)

local function integer(number)
  return string.format("%.0f", number)
end

-- Makes `hold` the owner. The token never goes back, not over FLUSHALL, a lost replica or an empty restart, because
-- it follows the server's clock; and never repeats when that clock steps back, because it follows the last one too.
-- The grantee's passes are reserved, so that they have tokens of their own without asking.
local function own(hold, channel, ttl, passes, since)
  local last = tonumber(redis.call("GET", clockKey) or 0)
  local token = math.max(last + 1, nowMicros)
  redis.call("HSET", lockKey, "hold", hold, "token", integer(token), "since", since or integer(token),
    "channel", channel)
  redis.call("PEXPIREAT", lockKey, integer(nowMs + ttl))
  redis.call("SET", clockKey, integer(token + passes))
  return token
end

-- R2: a TTL is only ever raised. Returns what is left.
local function raise(ttl)
  local left = redis.call("PTTL", lockKey)
  if left >= ttl then
    return left
  end
  redis.call("PEXPIREAT", lockKey, integer(nowMs + ttl))
  return ttl
end

-- Queues `hold`, or moves its deadline when it is queued already. HDEL is a write that a full Redis does not refuse
-- (R5): a place that was given is kept. A client that hears nothing at the moment gives no entry; the old one stands.
local function enqueue(hold, patience, entry)
  if redis.call("ZSCORE", queueKey, hold) then
    if entry == "" then
      entry = string.gsub(redis.call("HGET", waitersKey, hold) or "", "^%d+ ", "")
    end
    redis.call("HDEL", waitersKey, hold)
  else
    local last = redis.call("ZRANGE", queueKey, -1, -1, "WITHSCORES")[2]
    redis.call("ZADD", queueKey, integer(math.max(tonumber(last or 0) + 1, nowMicros)), hold)
  end
  redis.call("HSET", waitersKey, hold, integer(nowMs + patience) .. " " .. entry)
  for _, key in ipairs({ queueKey, waitersKey }) do
    if redis.call("PTTL", key) < patience then
      redis.call("PEXPIREAT", key, integer(nowMs + patience))
    end
  end
end

-- Gives the lock to the first live waiter and tells him. Returns his hold and TTL; `me` when that is the caller's own
-- hold (nothing is written for it); nothing when nobody waits (the lock's hash may then name a waiter that is gone:
-- the caller deletes or overwrites it).
--
-- R5: the head is taken off before anything else is written. Redis refuses a script's first write when it must
-- (READONLY, MISCONF, NOREPLICAS), so the script ends there with nothing done; memory it refuses only to writes that
-- need some, and no more once the script has written: a release hands over also when Redis is full. PUBLISH comes
-- after all writes that its message speaks of, and cannot fail the script: nobody is told of a grant that did not happen.
local function grantNext(since, me)
  while true do
    local hold = redis.call("ZPOPMIN", queueKey)[1]
    if not hold then
      return nil
    end
    local entry = redis.call("HGET", waitersKey, hold)
    redis.call("HDEL", waitersKey, hold)
    if hold == me then
      return me
    end
    local deadline, ttl, passes, counts, channel = string.match(entry or "", "^(%d+) (%d+) (%d+) ([01]) (.*)$")
    if deadline and tonumber(deadline) >= nowMs then
      local token = own(hold, channel, tonumber(ttl), tonumber(passes), since)
      local receivers = redis.pcall("PUBLISH", channel, table.concat({
        "grant", integer(token), integer(nowMicros), ttl, hold, lockKey }, " "))
      -- No receiver: that client is gone, the next waiter overwrites it. An error proves nothing, nor does the count
      -- of a client whose own messages are not counted.
      if type(receivers) ~= "number" or receivers > 0 or counts == "0" then
        return hold, tonumber(ttl)
      end
    end
  end
end

-- What became of a hold that no longer owns the lock. `since` <= token < the owner's token: it ended by its own
-- release, yield or leave, so this is a copy of a command that was executed before.
local function ended(token, owner)
  if not owner[1] then
    return { "gone", nowMicros, tonumber(redis.call("GET", clockKey) or 0) }
  end
  if tonumber(owner[3]) <= token and token < tonumber(owner[2]) then
    return { "released", nowMicros, 0 }
  end
  return { "taken", nowMicros, 0 }
end
