-- Ends a hold, or leaves it fewer units, for waiters, and queues a new hold of the same client after
-- them, in one command.
--
-- KEYS  hash, queue, clients, clock
-- ARGV  1 old       the hold that ends, or shrinks
--       2 stays     its units that stay
--       3 present   its token now
--       4 hold      the new one, as in acquire, like all that follows
--       5 lease ms   6 entry
-- RETURNS { OWNER, at µs, token, units 0.., waits 0|1, more 0|1 }     for the new hold, as acquire: the
--         { MINE, at µs, token, units 0.., waits 0|1, ttl ms, more 0|1 }   old one ended, or shrank
--         { HELD, at µs, ttl ms, place -1.., more 0|1, idle? 0..2, other? 0.. }
--         { DIFFERS, at µs, permits 0.., more 0|1 }
--         { RELEASED, more 0|1 }                                      for the old one, as release:
--         { GONE, clock 0.., more 0|1 }                               nothing was queued
-- INVARIANTS  A late copy finds that the old hold has ended or shrunk, and queues nothing. The new
--         hold is queued before any grant, so the queue alone decides which hold is next.
-- MODEL  `run_` with YIELD in proof/counted-server.pml

-- @include start
-- @include ../handoff/time
-- @include field
-- @include entry
local hold, lease, entry = ARGV[4], tonumber(ARGV[5]), ARGV[6]
local words = { readEntry(entry) }
local asks, number, joins, looks, queues, nonce
  = words[6] or math.huge, words[8] or 0, false, false, true, nil
local stored = call("HMGET", hash, "=", hold)
-- @include books
-- @include shared
-- @include end
if isMine then
  -- @include mine
end

if not call("ZSCORE", queue, entry) then
  local stays = tonumber(ARGV[2])
  local old = call("HGET", hash, ARGV[1])
  mode, till, units, token = readField(old)
  local isOld = mode and till >= ms
  if not isOld or units <= stays then
    advance(nil)
    commit(false)
    if isOld then
      return { RELEASED, more }
    end
    -- @include gone
  end
  endHold(ARGV[1], mode, till, units, token, stays, ARGV[3], sub(old, 42))
  if permits == 0 or differs(asks, number) then
    advance(nil)
    commit(false)
    return { DIFFERS, now, isKnown and permits or 0, more }
  end
  call("ZADD", queue, text, entry)
  -- @include ../handoff/behind
  heads = call("ZRANGE", queue, 0, 0, "WITHSCORES")
end

local got, gets = advance(hold, lease)
if usedUp and not got then
  -- There is no token to give: the old hold ends, as it should, and its client asks again.
  call("ZREM", queue, entry)
end
local waits = commit(false)
if got then
  return { OWNER, now, got, gets, waits, more }
elseif usedUp then
  return { RELEASED, more }
end
-- @include held
