-- Grants free units to waiters: sent when a reply said that more grants are due than one script
-- makes.
--
-- KEYS  hash, queue, clients, clock
-- ARGV  none
-- RETURNS { more 0|1 }   as in acquire
-- INVARIANTS  Safe to send at any time, by any client.
-- MODEL  `advance` in proof/counted-server.pml

-- @include start
-- @include ../handoff/time
-- @include field
local hold, number, looks, queues = "", 0, false, false
local stored = call("HMGET", hash, "=", hold)
-- @include books
-- @include shared
if heads[1] then
  advance(nil)
end
commit(false)
return more
