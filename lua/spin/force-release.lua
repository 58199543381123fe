-- Takes a spin lock away from its holder.
--
-- KEYS  1 the lock
-- ARGV  1 owner?   that is meant; left out: whichever it is
-- RETURNS { count 0..1 }   0: it was free, or had another owner than the one that is meant
-- INVARIANTS  Deletes a lock and no other data: a key of another type ends the script with
--         WRONGTYPE. The holder is notified at its next renewal or unlock, the waiters at their next
--         try: there are no messages.

local owner = redis.call("GET", KEYS[1])
if not owner or ARGV[1] and owner ~= ARGV[1] then
  return { 0 }
end
redis.call("DEL", KEYS[1])
return { 1 }
