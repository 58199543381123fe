-- Takes a spin lock away from its holder.
--
-- KEYS  1 the lock
-- ARGV  none
-- RETURNS { 1 = somebody held it }
-- INVARIANTS  Deletes a lock and no other data: a key of another type ends the script with WRONGTYPE. The holder learns of
--         it at its next renewal or unlock, the waiters at their next try: there are no messages.

if not redis.call("GET", KEYS[1]) then
  return { 0 }
end
redis.call("DEL", KEYS[1])
return { 1 }
