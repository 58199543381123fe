-- Shows the holds and the waiters of a counted resource, for people, and how many permits it has.
--
-- KEYS  hash, queue, clients, clock
-- ARGV  1 one?     1: only one of the holds is wanted, and nothing else
--       2 nonce?   clients that may be idle are asked whether they are; "": none is asked
-- RETURNS { at µs, permits 0.., isSet 0|1, used 0..,
--           holders [ hold text, mode r|w|p, units 0.., token 0.., remaining ms ],
--           waiters [ hold text, mode r|w|p, units 0.., upTo 0.., ticket 0.. ], stamp 0.. }
--         isSet: set-permits has said how many permits; permits: 0 = not set; used: units in use;
--         hold: <hold>[+][ label]; stamp: for a set-permits that is to come after all earlier ones
-- INVARIANTS  Changes nothing. At most 1 000 holds and 1 000 waiters. +: as in start.

-- @include start
-- @include ../handoff/time
-- @include field
-- @include entry
local ms = math.ceil(now / 1000)
local all = call("HGETALL", hash)
local source, permits, used, shown, waiting, stamp = nil, 0, 0, {}, {}, now
local one = ARGV[1] == "1"
for i = 1, #all, 2 do
  if one and shown[1] then
    break
  elseif all[i] == "=" then
    if match(all[i + 1], "^[02-9]%l ") then
      return redis.error_reply("LOCKFORMAT " .. sub(all[i + 1], 1, 1))
    end
    source, permits = match(all[i + 1], "^1([cs]) %d+ (%d+)")
    -- Even if the server's clock went back, or a server with an earlier clock has taken over.
    stamp = math.max(now, math.min(tonumber(match(all[i + 1], " (%d+)%+?$")) or 0, 9e15) + 1)
  else
    local mode, till, units, token = readField(all[i + 1])
    if mode and till >= ms then
      used = used + units
      for _, word in ipairs(#shown < 5000 and
          { all[i] .. sub(all[i + 1], 42), mode, units, token, till - ms } or {}) do
        table.insert(shown, word)
      end
    end
  end
end
local entries = one and {} or call("ZRANGE", queue, 0, 999, "WITHSCORES")
for i = 1, #entries, 2 do
  local hold, _, mode, _, _, units, upTo, _, label = readEntry(entries[i])
  for _, word in ipairs(hold and { hold .. label, mode, units, upTo, entries[i + 1] } or {}) do
    table.insert(waiting, word)
  end
end
for i = 1, ARGV[2] and #shown or 0, 5 do
  local hold = match(shown[i], "^([^ ]+)%+")
  if hold and string.byte(hold, -22) == 58 then
    redis.pcall("PUBLISH", sub(hold, 1, -23), "recall " .. hold .. " ?" .. ARGV[2] .. " " .. hash)
  end
end
return { now, tonumber(permits or 0), source == "s" and 1 or 0, used, shown, waiting, stamp }
