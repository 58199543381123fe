-- Included behind the common way of the scripts that may change the holder: every rule, whatever stands in Redis. A closure
-- costs 0.06 µs in each run that makes it, so a script makes these only when its common way has ended.
-- docs/protocol.md tells the whole; proof/server.pml has the same functions: take, grantNext, handOver.

-- What stands in a clock that gives no token; nothing as long as there is one.
local usedUp

-- What a caller is told that needs a token when there is none. Something else than a lock has written the clock.
local function noToken()
  if type(usedUp) == "table" then
    return usedUp
  end
  return redis.error_reply(
    "ERR the clock of fencing tokens, " .. clock .. ", is at " .. usedUp .. ": there is no larger token up to 2^53-1. "
      .. "Repair it with DEL " .. clock .. ", and tokens follow the server's time again")
end

-- Makes `hold` the owner. The token never goes back, not over FLUSHALL, a lost replica or an empty restart, because
-- it follows the server's clock; and never repeats when that clock steps back, because it follows the last one too.
-- The grantee's passes are reserved, so that they have tokens of their own without asking. Returns the token; nothing when
-- there is none, and nothing is changed then: above 2^53-1 numbers are not exact, so tokens would repeat.
-- A token has 16 digits, always: a server that thinks that it is 1970 begins at 10^15. What cannot be read counts as absent.
local function own(hold, ttl, passes, since)
  local last = redis.pcall("GET", clock)
  local before = math.floor(tonumber(last or 0) or 0)
  if before ~= before then
    before = 0
  end
  local token = math.max(before + 1, now, 1000000000000000)
  if type(last) == "table" or token + passes > 9007199254740991 then
    usedUp = last
    return nil
  end
  call("SET", clock, string.format("%.0f", token + passes))
  local digits = string.format("%.0f", token)
  call("SET", lock, "10 " .. digits .. " " .. (since or digits) .. " " .. hold, "PX", ttl)
  return digits
end

-- An entry that was popped, and gets no token, stands where it stood. Popped as the last one, it took the key's TTL with it.
local function putBack(entry, ticket)
  call("ZADD", queue, ticket, entry)
  if call("PTTL", queue) < 0 then
    call("PEXPIRE", queue, ENTRY_TTL / 500)
  end
end

-- How many dead entries are taken off one by one; then they are looked at in blocks, of so many at first and at the most.
local DEAD_IN_A_ROW, BLOCK, LONGEST_BLOCK = 4, 64, 1024

-- Channels that were asked about: how many are subscribed, nothing where that is not known; and the digit of the client
-- whose entries a re-check has kept, false: none has. They do not change while a script runs, and a crowd of one process
-- has one channel.
local receivers, kept, asked = {}, {}, 0

-- Of a crowd of many clients nothing is remembered: the memory would cost more than it saves.
local function forget()
  if asked > LONGEST_BLOCK then
    receivers, kept, asked = {}, {}, 0
  end
end

local function ask(channels)
  asked = asked + #channels
  -- An error proves nothing.
  local counts = redis.pcall("PUBSUB", "NUMSUB", unpack(channels))
  local members = {}
  for i, channel in ipairs(channels) do
    receivers[channel] = counts[2 * i]
    members[2 * i - 1], members[2 * i] = "1" .. channel, "0" .. channel
  end
  local ends = redis.pcall("ZMSCORE", clients, unpack(members))
  for i, channel in ipairs(channels) do
    local one, zero = tonumber(ends[2 * i - 1]), tonumber(ends[2 * i])
    kept[channel] = one and one >= now and "1" or zero and zero >= now and "0" or false
  end
end

-- The words of an entry, and the channel of its client; nothing when it cannot be read. Such a one is skipped: an error here
-- would come behind the pop.
local function read(entry)
  local digit, ttl, passes, hold = string.match(entry, "^([01]) ([1-9]%d*) (%d+) ([^ ]+)")
  if hold and #ttl < 16 and #passes < 5 and string.byte(hold, -22) == 58 then
    return hold, sub(hold, 1, -23), digit, ttl, passes
  end
end

-- Is the client of this entry dead, as far as anybody can know? When its time is over; or when nobody is subscribed to its
-- channel, and the number of subscribers proves something. What the client's last re-check has said counts more than what
-- the entry says.
local function isDead(channel, digit, ticket)
  local since = kept[channel]
  if not since and now - ticket > ENTRY_TTL then
    return true
  end
  return (since or digit) == "1" and receivers[channel] == 0
end

-- How many of these entries, from the first on, are dead; none behind `me` is.
local function countDead(entries, me)
  local channels, isListed = {}, {}
  forget()
  for i = 1, #entries, 2 do
    local _, channel = read(entries[i])
    if channel and kept[channel] == nil and not isListed[channel] then
      isListed[channel] = true
      table.insert(channels, channel)
    end
  end
  if #channels > 0 then
    ask(channels)
  end
  for i = 1, #entries, 2 do
    local hold, channel, digit = read(entries[i])
    if hold and (hold == me or not isDead(channel, digit, entries[i + 1])) then
      return (i - 1) / 2
    end
  end
  return #entries / 2
end

-- Takes dead entries off the head of the queue, in blocks. There is no bound on them: a live one behind them would wait for
-- somebody's next look.
local function clearDead(me)
  local length = BLOCK
  repeat
    local entries = call("ZRANGE", queue, 0, length - 1, "WITHSCORES")
    local dead = countDead(entries, me)
    if dead > 0 then
      call("ZREMRANGEBYRANK", queue, 0, dead - 1)
    end
    local isEnd = dead < length
    length = math.min(4 * length, LONGEST_BLOCK)
  until isEnd
end

-- Gives the lock to the first live waiter and tells it. `first`: what ZPOPMIN has taken off the head. Returns the hold and
-- its TTL; `me` and its ticket when that is the caller's own hold (nothing is written for it); nothing when nobody waits, or
-- when there is no token (the lock is then as it was: the caller deletes or overwrites it).
--
-- RACE: the subscribers are counted before anything is written or sent. To publish first, and to give the lock to the
-- next one when nobody was counted, would let two in: a subscriber of what has become a replica is not counted here,
-- and hears the message all the same. An error proves nothing, nor does the count of a client whose own messages are not
-- counted: such a waiter is granted the lock.
--
-- The head is taken off before anything else is written. Redis refuses a script's first write when it must
-- (READONLY, MISCONF, NOREPLICAS), so the script ends there with nothing done; memory it refuses only to writes that
-- need some, and no more once the script has written: a release hands over also when Redis is full. PUBLISH comes
-- after all writes that its message speaks of, and cannot fail the script: nobody is told of a grant that did not happen.
local function grantNext(first, since, me)
  local dead = 0
  while first[1] do
    local hold, channel, digit, ttl, passes = read(first[1])
    if hold and hold == me then
      return me, first[2]
    end
    if hold then
      forget()
      if kept[channel] == nil then
        ask({ channel })
      end
      if not isDead(channel, digit, first[2]) then
        local token = own(hold, ttl, passes, since)
        if not token then
          putBack(first[1], first[2])
          return nil
        end
        redis.pcall("PUBLISH", channel, table.concat({ "grant", token, text, ttl, "0", hold, lock }, " "))
        return hold, tonumber(ttl)
      end
    end
    dead = dead + 1
    if dead % DEAD_IN_A_ROW == 0 then
      clearDead(me)
    end
    first = call("ZPOPMIN", queue)
  end
end

-- Ends the owner's hold: to the first live waiter, with `since`, or to nobody. `first`: the head of the queue.
local function handOver(first, since)
  if not grantNext(first, since, nil) then
    call("DEL", lock)
  end
end
