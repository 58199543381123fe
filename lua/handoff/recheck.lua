-- Re-checks a place in the queue, and keeps all entries of this client.
--
-- KEYS  lock, queue, clients, clock
-- ARGV  1 hold   2 lease ms   3 passes   4 entry   (as in acquire, with the hold)
--       5 stays ms   for which the entries of the client stay from now on
--       6 counted    1: its receivers count; 0: they prove nothing, or it receives nothing now
--       7 told       the digit that the lock gets, if it was free and the hold is the owner now
-- RETURNS { OWNER, at µs, token, waits 0|1 }                      as in acquire
--         { MINE, at µs, token, ttl ms, waits 0|1, told 0..2 }
--         { HELD, at µs, ttl ms, place -1.., told 0..2 }
--         { GONE, at µs }                                         neither queued nor the owner; nothing
--                                                                 was done
-- INVARIANTS  Never queues. A hold whose entry is gone was granted and lost again meanwhile;
--         queueing it once more would let an old grant message count for a new entry, with a token
--         below the previous holder's: the client goes on with a new hold. Every place sends the
--         recall, because the first one may have crashed, or its recall is lost.
-- MODEL  `recheck` in proof/server.pml

-- @include start
-- @include time
local hold, lease, passes, entry = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local value = call("GET", lock)
if value and sub(value, 38) == hold then
  -- @include mine
elseif value then
  -- @include foreign
end
if not call("ZSCORE", queue, entry) then
  return { GONE, now }
end

local told, nonce = ARGV[7], nil
-- @include free

-- @include ../keep-entries
left = left or call("PTTL", lock)
local place = call("ZRANK", queue, entry) or -1
told = value and string.byte(value, 2) - 48 or 0
if told > 0 then
  -- @include recall
end
return { HELD, now, left, place, told }
