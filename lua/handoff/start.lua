-- Included first by every script that may change the holder.
--
-- lock     string "<format 1><told 0> <token> <since> <hold>[ <label>]", expires with the hold;
--          fixed positions: token at 4, since at 21 (16 digits each), hold at 38
--          told  = 0: the holder is not notified of waiters; 1: it is; 2: it is, and may be idle
--          since = token of the first hold of the unbroken chain of releases, yields and leaves
-- queue    sorted set: "<1 = its receivers count, else 0> <grant ttl ms> <local hand-offs> <hold>[
--          <label>]" -> ticket, the server's time in µs. An entry is made with its hold and never
--          changes, so every later command can name it
-- clients  sorted set: "<the same digit><channel>" -> µs until which a re-check keeps all entries of
--          that client
-- clock    string: the last fencing token given, those reserved for local hand-offs included; the
--          only key without a TTL
--
-- A hold is "<channel of its client>:<21 letters and digits>". Commands name it with its label
-- after it, "<hold>[ <label>]", as the lock and its entry have it; messages, and leave, name it
-- without.
local call, sub = redis.call, string.sub
local lock, queue, clients, clock = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
