-- Included behind time and field: reads all keys, and takes out what is over when it is time for
-- that. `stored`: what the script has read of the hash: the books, and the field of its hold;
-- `number`: how many permits there are by the caller's code, for a resource that does not say it
-- itself, 0 = not known.
--
-- All keys that a script cannot do without are read before the first write: one that holds
-- something else ends it with nothing done. Where the clock does, there is no token, and what needs
-- none goes on.
local ms, NEVER, NONE = math.ceil(now / 1000), 9999999999999, "0000000000000000"
local heads = call("ZRANGE", queue, 0, 0, "WITHSCORES")
if heads[1] then
  call("ZSCORE", clients, "")
end

-- Books that cannot be read are none: they are reckoned anew from the fields, and the number of
-- permits is the caller's.
local books = stored[1]
local source, used, permits, holds, reap, scanned, phase, stamp, tells =
  match(books or "", "^1([cs]) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)(%+?)$")
local isKnown = source and #used == 7 and #permits == 7 and #holds == 5
  and #reap == 13 and #scanned == 13 and #phase == 16
  and #stamp == 16
if isKnown then
  used, permits, holds, reap, scanned
    = tonumber(used), tonumber(permits), tonumber(holds), tonumber(reap), tonumber(scanned)
else
  if books and match(books, "^[02-9]%l ") then
    return redis.error_reply("LOCKFORMAT " .. sub(books, 1, 1))
  end
  source, used, permits, holds, reap, scanned, phase, stamp, tells =
    "c", 0, number, 0, NEVER, 0, NONE, NONE, "+"
end

-- Has anything been written yet? Must the books be written? For how many ms must the hash stand
-- from now on, at least?
local wrote, isChanged, need = false, false, 0
-- Did a scan find more room, so that a waiter may fit?
local goes = false
local exists = books and true

-- Takes out what is over, and reckons the books anew, so they are right whatever became of them. A
-- field that cannot be read counts as over: its client learns that from the next renewal, and the
-- operator from the log.
local function scan()
  local all, over, furthest, before, told = call("HGETALL", hash), {}, 0, used, tells
  used, holds, reap, scanned, tells = 0, 0, NEVER, ms, ""
  for i = 1, #all, 2 do
    if all[i] ~= "=" then
      local mode, till, units, token = readField(all[i + 1])
      if mode and till >= ms then
        used, holds = used + units, holds + 1
        reap, furthest = math.min(reap, till), math.max(furthest, till)
        if told ~= "" and sub(all[i + 1], 42, 42) == "+" then
          tells = "+"
        end
        -- Without books the readers that are there tell which phase it is.
        if not isKnown and mode == "r" and token > phase then
          phase = token
        end
      else
        table.insert(over, all[i])
        if not mode then
          redis.log(redis.LOG_WARNING, "holdfast: removed a field of " .. hash .. " that cannot be read")
        end
      end
    end
  end
  for i = 1, #over, 1000 do
    call("HDEL", hash, unpack(over, i, math.min(i + 999, #over)))
    wrote = true
  end
  exists = exists or #all > 0
  isChanged = exists
  goes = #over > 0 or used ~= before
  if not isKnown and used > 0 then
    need = furthest - ms + ENTRY_TTL / 1000
  end
end

-- A scan of many holds takes ms. So there is none before one of them can be over, and they take no
-- more than a small part of the time. But the books may be wrong about that, too: so there is one
-- when the last one is long ago, whatever script runs. After a step of the clock the last one may
-- lie in the future: it counts as long ago.
scanned = scanned <= ms and scanned or 0
if not isKnown or ms > reap and ms >= scanned + holds / 50 or ms >= scanned + SCAN_PERIOD then
  scan()
end

-- RACE: what is over is never raised, found or subtracted, also where no scan has taken it out yet:
-- its client has told its caller that it is lost, and a scan would subtract it once more.
local mode, till, units, token = readField(stored[2])
local isMine = mode and till >= ms
