-- Re-checks a place in the queue, and keeps all entries of this client. Or asks, for readers that
-- share a hold, whether more of them may enter it: a join.
--
-- KEYS  hash, queue, clients, clock
-- ARGV  1 hold   2 lease ms
--       3 joins      1: it joins
--       4 entry      as in acquire
--       5 stays ms   for which the entries of the client stay from now on
--       6 counted    1: its receivers count; 0: they prove nothing, or it receives nothing now
-- RETURNS { OWNER, at µs, token, units 0.., waits 0|1, more 0|1 }          as in acquire
--         { MINE, at µs, token, units 0.., waits 0|1, ttl ms, more 0|1 }
--         { HELD, at µs, ttl ms, place -1.., more 0|1, idle? 0..2, other? 0.. }
--         { GONE, at µs, more 0|1 }   neither queued nor held; or queued under another number of
--                            permits, and not queued any more. For a join: not held
-- INVARIANTS  Never queues. A join never makes a hold and never takes a place, even if a late copy
--         of the command that made the hold has queued it again after its end: entering that one
--         would overtake the queue.
-- MODEL  `run_` with AGAIN and JOIN in proof/counted-server.pml

-- @include start
-- @include ../handoff/time
-- @include field
-- @include entry
local hold, lease, joins, entry = ARGV[1], tonumber(ARGV[2]), ARGV[3] == "1", ARGV[4]
local number, asks = 0, nil
local words = { readEntry(entry) }
if words[1] then
  asks, number = words[6], words[8]
end
local looks, queues, nonce = true, false, nil
local stored = call("HMGET", hash, "=", hold)
-- @include books
-- @include shared
if isMine then
  -- @include mine
end

local isThere = not joins and call("ZSCORE", queue, entry)
local isOut = isThere and (not asks or permits == 0 or differs(asks, number))
if isOut then
  call("ZREM", queue, entry)
  wrote, heads = true, call("ZRANGE", queue, 0, 0, "WITHSCORES")
end
if isOut or not isThere then
  if (isOut or goes) and heads[1] then
    advance(nil)
  end
  commit(false)
  return { GONE, now, more }
end

local got, units = advance(hold, lease)
if got then
  local waits = commit(false)
  return { OWNER, now, got, units, waits, more }
end
commit(false)
if usedUp then
  -- @include ../no-token
  return noToken()
end
-- @include ../keep-entries
-- @include held
