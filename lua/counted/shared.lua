-- Included after books: the grants, and what is written and published at the end. Everything is
-- computed first. So a grant that gets no token removes no waiter from the queue, all writes of a
-- script go together, and all messages go out after them. `queues`: the script may queue a caller
-- before it checks which hold is next.

-- Entries that leave the queue; fields to be written, a hold and its text in turn; grants to be
-- published. `more`: 1 if there were more grants than one script makes. `given`: the last token given
-- here, local hand-offs included.
local out, fields, told, more, given = {}, {}, {}, 0, nil
-- The content of a clock that gives no token; nothing while there is one.
local usedUp, clocked
-- Was an entry added to the queue?
local isQueued = false

-- The next token, as in the hand-off; nothing if there is none.
local function nextToken(passes)
  local before = given
  if not before then
    clocked = redis.pcall("GET", clock)
    before = type(clocked) == "string" and math.floor(tonumber(clocked) or 0) or 0
    if before ~= before then
      before = 0
    end
  end
  local next = math.max(before + 1, now, 1000000000000000)
  if type(clocked) == "table" or next + passes > 9007199254740991 then
    usedUp = clocked
    return nil
  end
  given = next + passes
  return format("%.0f", next)
end

-- Writes a hold's field, with its label after a space, or "". The hash outlives the hold by `longer`
-- ms.
local function put(hold, mode, till, units, token, longer, label)
  fields[#fields + 1] = hold
  fields[#fields + 1] = format("1%s %013.0f %07d %s", mode, till, units, token) .. label
  reap, need, isChanged = math.min(reap, till), math.max(need, till - ms + longer), true
end

-- Gives a hold its units. Readers of one phase, with no writer between them, share its token: it is
-- above those of all earlier writers, and below those of all later ones. The first of them makes it.
-- Returns the token; if there is none, returns nothing and changes nothing.
local function own(hold, mode, units, ttl, passes, label)
  local isShared = mode == "r" and used > 0 and phase ~= NONE
  local token = isShared and phase or nextToken(passes)
  if token then
    if mode == "r" then
      phase = token
    elseif mode == "w" then
      -- It is alone, and no writer is cached: a try that comes with it need not ask earlier
      -- holders.
      tells = ""
    end
    used, holds = used + units, holds + 1
    put(hold, mode, math.min(ms + ttl, NEVER), units, token, ttl, label)
  end
  return token
end

-- Was it requested under another number of permits, or are there too few? A caller that wants some
-- of 10 must not get them out of 20. After a set-permits its number counts, whatever any caller's
-- code says.
local function differs(units, number)
  return units > permits or source == "c" and number ~= 0 and number ~= permits
end

-- The number that set-permits has stored, if the caller's code gives another one.
local other = source == "s" and number ~= 0 and number ~= permits and permits or nil

local advance
if heads[1] or queues then
  -- @include waiters
end

-- Writes everything computed, then publishes. Returns 1 if a caller still waits afterwards, else 0.
--
-- A full Redis refuses a script's first write, if that needs memory. A script that frees or keeps
-- something begins with a write that needs none, even one without effect, so that a full Redis lets
-- it run. If the caller is given something (`isGiven`), and nothing was freed before, the first
-- write is refused, with nothing done.
local function commit(isGiven)
  for i = 1, #out, 1000 do
    call("ZREM", queue, unpack(out, i, math.min(i + 999, #out)))
    wrote = true
  end
  local waits = (heads[1] or isQueued) and call("EXISTS", queue) == 1
  if isChanged or #out > 0 then
    if not wrote and not isGiven then
      call("HDEL", hash, "")
    end
    -- Books whose counts are too low must stay readable, without negative numbers: they contain the
    -- number of permits, which may have been set.
    used, holds = math.max(used, 0), math.max(holds, 0)
    if used == 0 and holds == 0 and not waits and source == "c" then
      if exists then
        call("DEL", hash)
      end
    else
      if given then
        call("SET", clock, format("%.0f", given))
      end
      if permits > 0 then
        fields[#fields + 1] = "="
        fields[#fields + 1] = format("1%s %07d %07d %05d %013.0f %013.0f %s %s%s",
          source, math.min(used, 9999999), permits, math.min(holds, 99999), reap,
          scanned, phase, stamp, tells)
      end
      if fields[1] then
        call("HSET", hash, unpack(fields))
        -- The books outlive the queue: otherwise a newcomer would decide how many permits there
        -- are, and invalidate the waiters. While the number comes from code the hash has a TTL,
        -- which is only raised, so nothing stays forever.
        local least = waits and math.max(need, call("PTTL", queue)) or need
        if source == "c" and (not exists or call("PTTL", hash) < least) then
          call("PEXPIRE", hash, least)
        end
      end
    end
  end
  for _, grant in ipairs(told) do
    local channel, hold, token, ttl, units = unpack(grant)
    redis.pcall("PUBLISH", channel, table.concat(
      { "share", token, text, format("%.0f", ttl), waits and 1 or 0, units, hold, hash }, " "))
  end
  return waits and 1 or 0
end
