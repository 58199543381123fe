-- Included by the scripts that grant to waiters, of every protocol whose waiters queue in Redis:
-- which of their clients are alive, as far as anybody can know. They have `call`, `clients` and
-- `now`.

-- Of so many channels at the most anything is remembered.
local LONGEST_BLOCK = 1024

-- Channels that were asked about: how many are subscribed, nothing where that is not known; and the
-- digit of the client whose entries a re-check has kept, false: none has. They do not change while
-- a script runs, and a crowd of one process has one channel.
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

-- Is the client of this entry dead? When its time is over; or when nobody is subscribed to its
-- channel, and the number of subscribers proves something. What the client's last re-check has said
-- counts more than what the entry says.
local function isDead(channel, digit, ticket)
  local since = kept[channel]
  if not since and now - ticket > ENTRY_TTL then
    return true
  end
  return (since or digit) == "1" and receivers[channel] == 0
end
