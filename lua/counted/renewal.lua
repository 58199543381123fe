-- Included by commands that raise ends: for one hold, with an answer and its ttl in ms.
local call, match, format = redis.call, string.match, string.format
-- @include field
local time = call("TIME")
local ms, NEVER = math.ceil(time[1] * 1000 + time[2] / 1000), 9999999999999

local function renewal(hash, hold, ttl, always)
  -- A key of another type has another owner; the other holds of this call must still be renewed.
  local field = redis.pcall("HGET", hash, hold)
  if type(field) == "table" then
    return TAKEN, 0
  end
  local mode, till, units, token = readField(field)
  if not mode or till < ms then
    return GONE, 0
  end
  local longer = math.min(ms + ttl, NEVER)
  if longer > till or always then
    till = math.max(till, longer)
    local left = call("PTTL", hash)
    if left >= 0 and left < till - ms + ttl then
      call("PEXPIRE", hash, till - ms + ttl)
    else
      call("HDEL", hash, "")
    end
    call("HSET", hash, hold, format("1%s %013.0f %07d %s", mode, till, units, token) .. string.sub(field, 42))
  end
  return RENEWED, till - ms
end
