-- Included where the hold waits, or would. The books outlive their queue, as in commit. Told is
-- when a unit may come back by itself, which is when the first place must look at the latest.
local least = call("PTTL", queue)
if source == "c" and call("PTTL", hash) < least then
  call("PEXPIRE", hash, least)
end
local left = math.max(math.max(reap, scanned + math.ceil(holds / 50)) - ms, 0)
local place = call("ZRANK", queue, entry) or -1
if tells == "" or holds > FEW_HOLDS then
  return { HELD, now, left, place, more }
end
-- All holders whose clients are told hear of it in one script: of the first place, of every look,
-- because a message may be lost, and of a try that asks. Says nothing of the asker's hold. They are
-- 16 at the most, among those of others; where these are many they hear nothing, and their holds
-- end by themselves.
if place == 0 or looks or nonce then
  local all = call("HGETALL", hash)
  for i = 1, #all, 2 do
    local _, till = readField(all[i + 1])
    if till and till >= ms and sub(all[i + 1], 42, 42) == "+" then
      redis.pcall("PUBLISH", sub(all[i], 1, -23), "recall " .. all[i] .. " " .. (nonce or "-") .. " " .. hash)
    end
  end
end
return { HELD, now, left, place, more, 2 }
