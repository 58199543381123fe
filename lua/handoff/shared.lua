-- Included by the scripts of the hand-off protocol that may change the holder. docs/protocol.md tells the whole;
-- proof/server.pml has the same functions: take, raise, enqueue, grantNext, handOver, whatBecame.
--
-- lock     string "<hold> <token> <since> <channel>", expires with the hold
--          since = token of the first hold of the unbroken chain of releases, yields and leaves
--          channel = where the holder's client listens, empty when it is not subscribed
-- queue    sorted set: waiting hold -> ticket
-- waiters  hash: waiting hold -> "<deadline ms> <grant ttl ms> <local passes> <1 = receivers count> <channel>"
-- clock    string: the last fencing token given, passes included; the only key without a TTL
local lockKey, queueKey, waitersKey, clockKey = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call = redis.call
local nowMicros, nowMs
-- What stands in a clock that leaves no larger token to give; nothing as long as there is one.
local usedUp

-- Who only ends a hold that nobody waits for needs no time.
local function tellTime()
  local time = call("TIME")
  nowMicros = time[1] * 1000000 + time[2]
  nowMs = math.ceil(nowMicros / 1000)
end

-- All the digits of it. Writing out a number of 16 digits is slow, so tokens stay texts wherever nobody calculates.
local function integer(number)
  return string.format("%.0f", number)
end

-- What a caller is told who needs a token when there is none. Something else than a lock has written the clock.
local function noToken()
  return redis.error_reply(
    "ERR the clock of fencing tokens, " .. clockKey .. ", is at " .. usedUp .. ": there is no larger token up to 2^53-1. "
      .. "Repair it with DEL " .. clockKey .. ", and tokens follow the server's time again")
end

-- The hold that owns the lock, its token, its `since` and its channel; nothing when the lock is free.
local function owner()
  local value = call("GET", lockKey)
  if not value then
    return nil
  end
  local hold, token, since, channel = string.match(value, "^(%S+) (%d+) (%d+) (.*)$")
  if not hold then
    -- Always fails, with WRONGTYPE. Redis 6.2 cannot raise an error that a script has made: it can only return one.
    call("HGET", lockKey, "")
  end
  return hold, token, since, channel
end

-- Makes `hold` the owner. The token never goes back, not over FLUSHALL, a lost replica or an empty restart, because
-- it follows the server's clock; and never repeats when that clock steps back, because it follows the last one too.
-- The grantee's passes are reserved, so that they have tokens of their own without asking. Returns the token; nothing when
-- there is none, and nothing is changed then: above 2^53-1 numbers are not exact, so tokens would repeat.
local function own(hold, channel, ttl, passes, since)
  local token = nowMicros
  local before = call("SET", clockKey, integer(token + passes), "GET")
  local last = tonumber(before or 0) or 0
  if last >= token then
    token = last + 1
    if token + passes > 9007199254740991 then
      call("SET", clockKey, before)
      usedUp = before
      return nil
    end
    call("SET", clockKey, integer(token + passes))
  end
  local text = integer(token)
  call("SET", lockKey, table.concat({ hold, text, since or text, channel }, " "), "PX", ttl)
  return text
end

-- R2: a TTL is only ever raised. Returns what is left.
local function raise(ttl)
  local left = call("PTTL", lockKey)
  if left >= tonumber(ttl) then
    return left
  end
  call("PEXPIRE", lockKey, ttl)
  return ttl
end

-- Writes what is to be known of a queued hold. Both keys outlive the furthest deadline; for up to twice the patience,
-- so that not everybody who queues has to raise their TTL.
local function describe(hold, patience, entry)
  call("HSET", waitersKey, hold, integer(nowMs + patience) .. " " .. entry)
  for _, key in ipairs({ queueKey, waitersKey }) do
    if call("PTTL", key) < tonumber(patience) then
      call("PEXPIRE", key, 2 * patience)
    end
  end
end

-- Queues a new hold.
local function enqueue(hold, patience, entry)
  local last = call("ZRANGE", queueKey, -1, -1, "WITHSCORES")[2]
  call("ZADD", queueKey, math.max(tonumber(last or 0) + 1, nowMicros), hold)
  describe(hold, patience, entry)
end

-- Moves the deadline of a hold that is queued. HDEL is a write that a full Redis does not refuse (R5): a place that was
-- given is kept. A client that hears nothing at the moment names no channel; what it said before stands.
local function keep(hold, patience, entry, channel)
  if channel == "" then
    entry = string.gsub(call("HGET", waitersKey, hold) or "0 " .. entry, "^%d+ ", "")
  end
  call("HDEL", waitersKey, hold)
  describe(hold, patience, entry)
end

-- How many dead entries are taken off one by one; then they are looked at in blocks, of so many at first and at the most.
local DEAD_IN_A_ROW, BLOCK, LONGEST_BLOCK = 4, 64, 1024

-- Channels that were asked about: true when nobody is subscribed. They do not change while a script runs, and a crowd of one
-- process has one channel.
local isDeaf, asked = {}, 0

local function ask(channels)
  -- Of a crowd of many clients nothing is remembered: the memory would cost more than it saves.
  asked = asked + #channels
  if asked > LONGEST_BLOCK then
    isDeaf, asked = {}, 0
  end
  -- An error proves nothing.
  local counts = redis.pcall("PUBSUB", "NUMSUB", unpack(channels))
  for i, channel in ipairs(channels) do
    isDeaf[channel] = counts[2 * i] == 0
  end
end

-- What a waiter wants: its channel, its deadline, grant TTL and passes, and whether the subscribers of the channel tell if it
-- lives. Nothing when its time is over, or when it cannot be read.
local function wish(entry)
  local deadline, ttl, passes, counts, channel = string.match(entry or "", "^(%d+) (%d+) (%d+) ([01]) (.+)$")
  if deadline and tonumber(deadline) >= nowMs then
    return channel, deadline, ttl, passes, counts == "1"
  end
end

-- The client that a hold is of: what stands before its number and its random bits.
local function clientOf(hold)
  return string.byte(hold, -22) == 58 and string.sub(hold, 1, -23) or hold
end

-- How many of these holds, from the first on, are dead; none behind `me` is. A client that is not subscribed has no live
-- entry: that of one of its holds is read, and its channel asked about.
local function countDead(holds, me)
  local clients, channels, isDead, unknown = {}, {}, {}, {}
  for i, hold in ipairs(holds) do
    local client = clientOf(hold)
    clients[i] = client
    if isDead[client] == nil then
      local channel, _, _, _, counts = wish(call("HGET", waitersKey, hold))
      if not channel then
        channels[i] = ""
      elseif counts then
        channels[i] = channel
        isDead[client] = false
        if isDeaf[channel] == nil then
          table.insert(unknown, channel)
        end
      end
    end
  end
  if #unknown > 0 then
    ask(unknown)
  end
  for i, hold in ipairs(holds) do
    local channel, client = channels[i], clients[i]
    if channel and isDeaf[channel] then
      isDead[client] = true
    end
    if hold == me or not (channel == "" or isDead[client] or not wish(call("HGET", waitersKey, hold))) then
      return i - 1
    end
  end
  return #holds
end

-- Takes dead entries off the head of the queue, in blocks. There is no bound on them: a live one behind them would wait for
-- somebody's next look.
local function clearDead(me)
  local length = BLOCK
  repeat
    local holds = call("ZRANGE", queueKey, 0, length - 1)
    local dead = countDead(holds, me)
    if dead > 0 then
      call("ZREM", queueKey, unpack(holds, 1, dead))
      call("HDEL", waitersKey, unpack(holds, 1, dead))
    end
    local isEnd = dead < length
    length = math.min(4 * length, LONGEST_BLOCK)
  until isEnd
end

-- Gives the lock to the first live waiter and tells him. Returns his hold and TTL; `me` when that is the caller's own
-- hold (nothing is written for it); nothing when nobody waits (the lock is then as it was: the caller deletes or
-- overwrites it).
--
-- RACE 6: who is subscribed is asked before anything is written or sent. To publish first, and to give the lock to the
-- next one when nobody was counted, would let two in: a subscriber of what has become a replica is not counted here,
-- and hears the message all the same. An error proves nothing, nor does the count of a client whose own messages are not
-- counted: such a waiter is granted the lock.
--
-- R5: the head is taken off before anything else is written. Redis refuses a script's first write when it must
-- (READONLY, MISCONF, NOREPLICAS), so the script ends there with nothing done; memory it refuses only to writes that
-- need some, and no more once the script has written: a release hands over also when Redis is full. PUBLISH comes
-- after all writes that its message speaks of, and cannot fail the script: nobody is told of a grant that did not happen.
local function grantNext(since, me)
  local dead = 0
  while true do
    local popped = call("ZPOPMIN", queueKey)
    local hold, ticket = popped[1], popped[2]
    if not hold then
      return nil
    end
    local entry = call("HGET", waitersKey, hold)
    call("HDEL", waitersKey, hold)
    if hold == me then
      return me
    end
    local channel, deadline, ttl, passes, counts = wish(entry)
    if channel and counts and isDeaf[channel] == nil then
      ask({ channel })
    end
    if channel and not (counts and isDeaf[channel]) then
      local token = own(hold, channel, ttl, passes, since)
      if not token then
        call("ZADD", queueKey, ticket, hold)
        describe(hold, math.max(deadline - nowMs, 1), string.gsub(entry, "^%d+ ", "", 1), nil)
        return nil
      end
      redis.pcall("PUBLISH", channel, table.concat({ "grant", token, integer(nowMicros), ttl, hold, lockKey }, " "))
      return hold, tonumber(ttl)
    end
    dead = dead + 1
    if dead % DEAD_IN_A_ROW == 0 then
      clearDead(me)
    end
  end
end

-- Ends the owner's hold: to the first live waiter, with `since`, or to nobody.
local function handOver(since)
  if call("EXISTS", queueKey) == 1 then
    tellTime()
    if grantNext(since, nil) then
      return
    end
  end
  call("DEL", lockKey)
end

-- What became of a hold that no longer owns the lock. `since` <= token < the owner's token: it ended by its own
-- release, yield or leave, so this is a copy of a command that was executed before.
local function ended(token, ownersToken, since)
  if not ownersToken then
    return { "gone", call("GET", clockKey) or 0 }
  end
  token = tonumber(token)
  return { tonumber(since) <= token and token < tonumber(ownersToken) and "released" or "taken", 0 }
end
