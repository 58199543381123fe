-- Included where the hold waits, or would. The books outlive their queue, as in commit. Told is when a unit may come back by
-- itself, which is when the first place must look at the latest.
local least = call("PTTL", queue)
if source == "c" and call("PTTL", hash) < least then
  call("PEXPIRE", hash, least)
end
local left = math.max(math.max(reap, scanned + math.ceil(holds / 50)) - ms, 0)
return { HELD, now, left, call("ZRANK", queue, entry) or -1, more }
