-- Included if the hold owns the lock already: a copy of a command that was executed, or a re-check
-- that comes before the message. A TTL is only ever raised; the digit `told` stays, because a hold
-- that was granted since is not notified.
local left = call("PTTL", lock)
if left < tonumber(lease) then
  call("PEXPIRE", lock, lease)
  left = tonumber(lease)
end
return { MINE, now, sub(value, 4, 19), left, call("EXISTS", queue), string.byte(value, 2) - 48 }
