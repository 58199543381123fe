-- Included if `value`, the lock's, names no hold of the caller: a value that is no lock of this
-- format is left unchanged.
local byte = string.byte
if not (byte(value) == 49 and byte(value, 3) == 32 and byte(value, 20) == 32 and byte(value, 37) == 32) then
  if byte(value) ~= 49 and string.find(value, "^%d%d ") then
    return redis.error_reply("LOCKFORMAT " .. sub(value, 1, 1))
  end
  return redis.error_reply("WRONGTYPE The key of the lock holds something else")
end
