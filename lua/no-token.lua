-- Included where a token may be needed that does not exist. `usedUp`: what stands in the clock then.

-- What a caller is told that needs a token when there is none. Something else than a lock has
-- written the clock.
local function noToken()
  if type(usedUp) == "table" then
    return usedUp
  end
  return redis.error_reply(
    "ERR the clock of fencing tokens, " .. clock .. ", is at " .. usedUp
      .. ": there is no larger token up to 2^53-1. "
      .. "Repair it with DEL " .. clock .. ", and tokens follow the server's time again")
end
