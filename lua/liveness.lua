-- Included by the scripts that grant to waiters, of every protocol whose waiters queue in Redis:
-- which of their clients are alive, as far as that can be known. They define `call`, `clients` and
-- `now`.

-- The maximum number of channels that are remembered.
local LONGEST_BLOCK = 1024

-- The channels that were checked: how many subscribers they have, nil if unknown; and the digit of
-- the client whose entries a re-check has kept, false: none has. They do not change while a script
-- runs, and a crowd of one process has one channel.
local receivers, kept, asked = {}, {}, 0

-- For a crowd of many clients nothing is remembered: the memory would cost more than it saves.
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

-- Is the client of this entry dead? It is if its time is over; or if its channel has no subscriber,
-- and the number of subscribers is reliable. The client's last re-check counts more than its entry.
local function isDead(channel, digit, ticket)
  local since = kept[channel]
  if not since and now - ticket > ENTRY_TTL then
    return true
  end
  return (since or digit) == "1" and receivers[channel] == 0
end
