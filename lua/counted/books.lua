-- Included after time and field: reads all keys, and removes expired holds when a scan is due.
-- `stored`: the fields of the hash that the script has read: the books, and its hold's; `number`:
-- how many permits there are by the caller's code, for a resource that does not store it, 0 = not
-- known.
--
-- All keys that a script needs are read before the first write, so that a key of another type ends
-- it with nothing done. A clock of another type does not end it: only operations that need a token
-- fail.
local ms, NEVER, NONE = math.ceil(now / 1000), 9999999999999, "0000000000000000"
local heads = call("ZRANGE", queue, 0, 0, "WITHSCORES")
if heads[1] then
  call("ZSCORE", clients, "")
end

-- Unreadable books count as none: they are computed anew from the fields, and the number of permits
-- is the caller's.
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

-- Was anything written yet? Must the books be written? For at least how many ms from now must the
-- hash exist?
local wrote, isChanged, need = false, false, 0
-- Did a scan free units, so that a waiter may fit?
local goes = false
local exists = books and true

-- Removes expired holds, and computes the books anew, so they are right whatever happened to them.
-- An unreadable field counts as expired: its client learns that from the next renewal, and the
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
        -- Without books the present readers show which phase it is.
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

-- A scan of many holds takes ms. So there is none before a hold can have expired, and scans take
-- only a small part of the time. But the books may be wrong about that, too: so every script scans
-- if the last scan is long ago. After a step of the clock the last one may be in the future, which
-- counts as long ago.
scanned = scanned <= ms and scanned or 0
if not isKnown or ms > reap and ms >= scanned + holds / 50 or ms >= scanned + SCAN_PERIOD then
  scan()
end

-- RACE: an expired hold is never raised, found or subtracted, even if no scan has removed it yet:
-- its client has reported its loss, and a scan would subtract it once more.
local mode, till, units, token = readField(stored[2])
local isMine = mode and till >= ms
