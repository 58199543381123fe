-- Included if a hold may get the lock: a free lock goes to the first live waiter, which may be this
-- hold, and to this hold if none is waiting; then it returns. `told`: the digit that it gets.
-- `left`: the TTL of the waiter that got it instead; nil if the lock was not free.
local left
if not value then
  -- @include shared
  local granted, detail
  if call("EXISTS", queue) == 1 then
    granted, detail = grantNext(call("ZPOPMIN", queue), nil, hold)
  end
  if not granted or granted == hold then
    -- If the next waiter gets no token, no caller does: a caller with fewer reserved tokens would
    -- overtake.
    local token = not usedUp and own(hold, lease, passes, nil, told)
    if token then
      return { OWNER, now, token, call("EXISTS", queue) }
    elseif granted then
      putBack(entry, detail)
    end
    return noToken()
  end
  left = detail
end
