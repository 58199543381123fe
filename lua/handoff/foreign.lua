-- Included where `value`, that of the lock, names no hold of the caller: nothing is done to what is
-- no lock of this format.
local byte = string.byte
if not (byte(value) == 49 and byte(value, 3) == 32 and byte(value, 20) == 32 and byte(value, 37) == 32) then
  if byte(value) ~= 49 and string.find(value, "^%d%d ") then
    return redis.error_reply("LOCKFORMAT " .. sub(value, 1, 1))
  end
  return redis.error_reply("WRONGTYPE The key of the lock holds something else")
end
