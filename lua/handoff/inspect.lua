-- Shows the holder and the waiters of a lock, for people.
--
-- KEYS  lock, queue, clients, clock
-- ARGV  1 most     as many waiters
--       2 nonce?   after a "?": a holder that may be idle is asked whether it is
-- RETURNS { at µs, hold text, token 0.., remaining ms, told 0..2, ...waiters { hold text, ticket 0.. } }
--         hold: with its label after a space; "": there is no holder. Waiters are in order
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
