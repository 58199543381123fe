-- Included first by every script of the counted resources, which are read-write locks and semaphores. A resource has permits;
-- each hold has so many units of them: a writer all, which are 1 000 000, a reader 1, a caller of a semaphore what it asked for.
--
-- hash     a field for each hold, and the books in the field "=". Fixed positions, and numbers padded with zeros
--   hold   "<format 1><mode> <end> <units> <token>[+][ <label>]": mode at 2: r = reads, w = writes, p = permits; end at 4: the
--          server's time in ms until which it lives, 13 digits; units at 18, 7 digits; token at 26, 16 digits;
--          + at 42: its client is told when somebody waits for it, by a recall, and may have nobody inside
--   books  "<format 1><source> <used> <permits> <holds> <next reap> <last scan> <phase> <stamp>[+]": source at 2: c = the number of
--          permits comes from the callers' code, s = from set-permits; used at 4: units of all holds; permits at 12; holds at 20:
--          how many; next reap at 26: no hold ends before; last scan at 40; phase at 54: the token of the readers; stamp at 71:
--          when set-permits was asked for, in µs; + behind it: one of the holds may have a +
-- queue    sorted set: "<1 = its receivers count, else 0><mode> <grant ttl ms> <passes> <units> <up to> <permits> <hold>[ <label>]"
--          -> ticket, as in the hand-off. An entry is made with its hold and never changes. Permits: as many as the caller's
--          code says that there are, 0 = whatever is stored
-- clients  sorted set, as in the hand-off
-- clock    string: the last fencing token given, passes included
local call, sub, match, format = redis.call, string.sub, string.match, string.format
local hash, queue, clients, clock = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
