-- Shows the holder and the waiters of a lock, for people.
--
-- KEYS  lock, queue, clients, clock
-- ARGV  1 the maximum number of waiters
--       2 "?" and a nonce: a holder that may be idle is asked whether it is; left out: it is not
--         asked
-- RETURNS { now µs, hold[ label] or "", token, remaining ms, told, then for each waiter, in
-- order: hold[ label], ticket }
-- INVARIANTS  Changes nothing.

-- @include start
-- @include time
local shown = { now, "", 0, 0, 0 }
local value = call("GET", lock)
if value then
  -- @include foreign
  shown = { now, sub(value, 38), sub(value, 4, 19), call("PTTL", lock), string.byte(value, 2) - 48 }
end
local most = tonumber(ARGV[1])
local entries = most > 0 and call("ZRANGE", queue, 0, most - 1, "WITHSCORES") or {}
-- @include waiting
local nonce = ARGV[2]
if nonce and shown[5] == 2 then
  -- @include recall
end
return shown
