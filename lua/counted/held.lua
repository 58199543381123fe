-- Included if the hold waits, or would wait. The books outlive their queue, as in commit. The
-- answer says when a unit may come back by itself: by then the first place must re-check.
local least = call("PTTL", queue)
if source == "c" and call("PTTL", hash) < least then
  call("PEXPIRE", hash, least)
end
local left = math.max(math.max(reap, scanned + math.ceil(holds / 50)) - ms, 0)
local place = call("ZRANK", queue, entry) or -1
if tells == "" or holds > FEW_HOLDS then
  return { HELD, now, left, place, more, other and 0, other }
end
-- A script notifies all holders that want it: for the first place, for every re-check, because a
-- message may be lost, and for a try that asks. The message does not name the asker's hold. At most
-- 16 holders of other clients are notified; if there are more, the others receive nothing, and
-- their holds end by themselves.
if place == 0 or looks or nonce then
  local all = call("HGETALL", hash)
  for i = 1, #all, 2 do
    local _, till = readField(all[i + 1])
    if till and till >= ms and sub(all[i + 1], 42, 42) == "+" then
      redis.pcall("PUBLISH", sub(all[i], 1, -23), "recall " .. all[i] .. " " .. (nonce or "-") .. " " .. hash)
    end
  end
end
return { HELD, now, left, place, more, 2, other }
