-- Included by shared if callers are waiting. Creating a function costs each run 0.06 µs and more,
-- so these are only created here.

-- @include entry
-- @include ../liveness

-- Checks the clients of these entries.
local function askFor(entries)
  local channels, isListed = {}, {}
  forget()
  for i = 1, #entries, 2 do
    local hold = readEntry(entries[i])
    local channel = hold and sub(hold, 1, -23)
    if channel and kept[channel] == nil and not isListed[channel] then
      isListed[channel] = true
      table.insert(channels, channel)
    end
  end
  if #channels > 0 then
    ask(channels)
  end
end

-- How many entries are checked together, after the first.
local BLOCK = 32

-- The head of the queue: grants to its waiters, in order, until one does not fit, so that none
-- overtakes. A dead head is removed even if it would not fit, because it would block those that do;
-- so is an unreadable one. `me`: the caller's own hold, which gets `lease` ms; the grants continue
-- after it. Returns its token and units if it was given any.
advance = function(me, lease)
  local entries, place, length, myToken, myUnits = heads, 0, 1, nil, nil
  while entries[1] do
    local before = #told
    askFor(entries)
    for i = 1, #entries, 2 do
      local hold, digit, mode, ttl, passes, units, upTo, number, label = readEntry(entries[i])
      -- If the number of permits is not set, the first waiter sets it.
      if hold and permits == 0 then
        permits = number
      end
      local channel = hold and sub(hold, 1, -23)
      local isMe = hold and hold == me
      if isMe or hold and not differs(units, number) and not isDead(channel, digit, entries[i + 1]) then
        if #told >= RUN then
          more = 1
          return myToken, myUnits
        end
        if units > permits - used or holds >= MOST_HOLDS then
          return myToken, myUnits
        end
        local gets = math.min(math.max(units, upTo), permits - used)
        local token = own(hold, mode, gets, isMe and lease or ttl, passes, label)
        if not token then
          return myToken, myUnits
        elseif isMe then
          myToken, myUnits = token, gets
        else
          table.insert(told, { channel, hold, token, ttl, gets })
        end
      end
      table.insert(out, entries[i])
    end
    if #entries < 2 * length then
      break
    end
    place = place + length
    -- A crowd of dead clients is checked in larger blocks.
    length = #told > before and BLOCK or math.min(math.max(4 * length, BLOCK), LONGEST_BLOCK)
    entries = call("ZRANGE", queue, place, place + length - 1, "WITHSCORES")
  end
  return myToken, myUnits
end
