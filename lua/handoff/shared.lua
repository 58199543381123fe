-- Included after the common case of the scripts that may change the holder: every rule, for any
-- content of Redis. Creating a closure costs each run 0.06 µs, so a script creates these only if
-- its common case did not apply.
-- docs/protocol.md explains the whole; proof/server.pml has the same functions: take, grantNext,
-- handOver.

-- The content of a clock that gives no token; nothing while there is one.
local usedUp

-- @include ../no-token

-- Makes `hold` the owner. The token never goes back, not even after FLUSHALL, a lost replica or an
-- empty restart, because it follows the server's clock; and never repeats when that clock steps
-- back, because it follows the last one too.
-- The grantee's local hand-offs have reserved tokens, so that they need no round trip. `told`: its
-- digit. Returns the token; if there is none, returns nothing and changes nothing: above 2^53-1
-- numbers are not exact, so tokens would repeat.
-- A token always has 16 digits: a server whose clock is in 1970 begins at 10^15. An unreadable
-- value counts as absent.
local function own(hold, ttl, passes, since, told)
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
  -- However many grants come in a second, and whatever they ask for, the clock is ahead of the
  -- server's time by little. The client sees it by the same comparison.
  if token > now then
    passes = math.min(passes, TOKENS_AHEAD)
  end
  call("SET", clock, string.format("%.0f", token + passes))
  local digits = string.format("%.0f", token)
  call("SET", lock, "1" .. told .. " " .. digits .. " " .. (since or digits) .. " " .. hold, "PX", ttl)
  return digits
end

-- An entry that was popped, and gets no token, returns to its place. If it was the last one, the
-- key's TTL went with it.
local function putBack(entry, ticket)
  call("ZADD", queue, ticket, entry)
  if call("PTTL", queue) < 0 then
    call("PEXPIRE", queue, "QUEUE_TTL")
  end
end

-- How many dead entries are removed one by one; the others are checked in blocks, at first of this
-- size.
local DEAD_IN_A_ROW, BLOCK = 4, 64

-- @include ../liveness

-- The words of an entry, and the channel of its client; nothing if it cannot be read. Such an entry
-- is skipped: an error here would come after the pop. First its hold with its label, as in the
-- lock's value and its client's commands; last the hold.
local function read(entry)
  local digit, ttl, passes, written, hold = string.match(entry, "^([01]) ([1-9]%d*) (%d+) (([^ ]+).*)$")
  if hold and #ttl < 16 and #passes < 5 and string.byte(hold, -22) == 58 then
    return written, sub(hold, 1, -23), digit, ttl, passes, hold
  end
end

-- How many of these entries, from the first on, are dead; none after `me` is.
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
    local written, channel, digit = read(entries[i])
    if written and (written == me or not isDead(channel, digit, entries[i + 1])) then
      return (i - 1) / 2
    end
  end
  return #entries / 2
end

-- Removes dead entries from the head of the queue, in blocks, without a limit: a live entry after
-- them would wait for another client's re-check.
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

-- Gives the lock to the first live waiter and notifies it. `first`: the entry that ZPOPMIN took
-- from the head. Returns the hold and its TTL; `me` and its ticket if that is the caller's own hold
-- (nothing is written for it); nothing if none is waiting, or if there is no token (the lock is
-- then as it was: the caller deletes or overwrites it).
--
-- RACE: the subscribers are counted before anything is written or sent. To publish first, and to
-- give the lock to the next waiter if no receiver was counted, would admit two holders: a
-- subscriber on a server that has become a replica is not counted here, and still receives the
-- message. An error proves nothing, nor does the count of a client whose own messages are not
-- counted: such a waiter is granted the lock.
--
-- The head is removed before anything else is written. Redis refuses a script's first write if it
-- must (READONLY, MISCONF, NOREPLICAS), so the script ends there with nothing done. For lack of
-- memory it refuses only writes that need some, and none after the script has written: a release
-- hands over even when Redis is full. PUBLISH comes after all writes that its message reports, and
-- cannot fail the script: no client receives a grant that did not happen.
local function grantNext(first, since, me)
  local dead = 0
  while first[1] do
    local written, channel, digit, ttl, passes, hold = read(first[1])
    if written and written == me then
      return me, first[2]
    end
    if written then
      forget()
      if kept[channel] == nil then
        ask({ channel })
      end
      if not isDead(channel, digit, first[2]) then
        local token = own(written, ttl, passes, since, "0")
        if not token then
          putBack(first[1], first[2])
          return nil
        end
        local waits = call("EXISTS", queue)
        redis.pcall("PUBLISH", channel, table.concat({ "grant", token, text, ttl, waits, hold, lock }, " "))
        return written, tonumber(ttl)
      end
    end
    dead = dead + 1
    if dead % DEAD_IN_A_ROW == 0 then
      clearDead(me)
    end
    first = call("ZPOPMIN", queue)
  end
end

-- Ends the owner's hold: to the first live waiter, with `since`, or to none. `first`: the head of the
-- queue.
local function handOver(first, since)
  if not grantNext(first, since, nil) then
    call("DEL", lock)
  end
end
