-- Included if a needed token may not exist. `usedUp`: the content of the clock then.

-- The error for a caller that needs a token when there is none. Another program has written the
-- clock.
local function noToken()
  if type(usedUp) == "table" then
    return usedUp
  end
  return redis.error_reply(
    "ERR the clock of fencing tokens, " .. clock .. ", is at " .. usedUp
      .. ": there is no larger token up to 2^53-1. "
      .. "Repair it with DEL " .. clock .. ", and tokens follow the server's time again")
end
