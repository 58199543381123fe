-- Included: answers what happened to a hold that no longer owns the lock. `value`: the lock's; ARGV
-- 1 and 2: the hold and its token. since <= token < the owner's token: the hold ended by its own
-- release, yield or leave, so this is a copy of a command that was executed before.
if not value then
  local last = redis.pcall("GET", clock)
  return { GONE, type(last) == "string" and last or 0 }
end
-- @include foreign
local token, since, owners = tonumber(ARGV[2]), tonumber(sub(value, 21, 36)), tonumber(sub(value, 4, 19))
return since and owners and since <= token and token < owners and RELEASED or TAKEN
