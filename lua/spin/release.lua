-- Ends a hold: compare and delete.
--
-- KEYS  1 the lock
-- ARGV  1 owner
-- RETURNS RELEASED
--         GONE
--         TAKEN
-- INVARIANTS  Never deletes a key that another owner has set, also by another library. Safe to send
--         any number of times: an owner id is used for one hold.

local holder = redis.call("GET", KEYS[1])
if holder ~= ARGV[1] then
  return holder and TAKEN or GONE
end
redis.call("DEL", KEYS[1])
return RELEASED
