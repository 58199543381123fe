-- Begins a turn, unless one runs, or the interval of the last one is not over.
--
-- KEYS  turn
-- ARGV  1 hold        never used before
--       2 lease ms    of the turn while it runs
--       3 every ms    how long a turn lasts
--       4 aligned     1: turns are slots of the server's clock; 0: they count from the beginning of the
--                     last one
--       5 crash       "keep": a crash does not free the turn before its end; "again": it does, after
--                     the lease
--       6 before µs   by the server's clock: from it on this command begins nothing
-- RETURNS { OWNER, at µs, begin µs, ttl ms } { MINE, at µs, begin µs, ttl ms }   it runs for this hold
--         { HELD, at µs, ttl ms }   another one runs
--         { GONE, at µs, ttl ms }   it was done; the caller's interval ends after that time
--         { STALE, at µs }          nothing was done
-- INVARIANTS  At most one turn begins in an interval, unless one crashes and "again" was asked for.
--             Of callers with different intervals each has its own counted, from the beginning of
--             the last turn. If the clock was stepped back, an interval counts from the first of
--             these commands after the step.

-- @include start
-- @include ../handoff/time
local lease, every, aligned = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == "1"
if isMine then
  -- RACE: its caller may have no answer yet, and asks also after the end of the interval in which the
  -- turn began. Its body needs the whole lease, or another could begin before it is renewed.
  local left = call("PTTL", turn)
  if left < lease then
    call("PEXPIRE", turn, lease)
    left = lease
  end
  return { MINE, now, begin, left }
elseif now >= tonumber(ARGV[6]) then
  -- RACE: a copy that the network delayed would begin a turn that no caller runs.
  return { STALE, now }
elseif isRunning then
  return { HELD, now, call("PTTL", turn) }
elseif value and tonumber(begin) > now then
  -- RACE: the server's clock was stepped back after this turn began, and Redis ends the key by that
  -- clock: without a new end the job would not run for the whole step. With slots: until the end of
  -- the next one, so that a small step never runs a job twice in a slot.
  local rest = aligned and untilEnd(now, now, every, true) or 0
  local left = call("PTTL", turn)
  if left > rest + every or tonumber(begin) > now + rest * 1000 then
    left = math.min(left, rest + every)
    -- First a write that a full Redis does not refuse. From now on the turn counts as begun now, or
    -- with the next slot: otherwise it would count once more when the clock has passed its beginning,
    -- also if the step came during the turn, whose end is no later than an interval after it.
    call("PEXPIRE", turn, left)
    call("SET", turn, "1d " .. string.format("%016.0f", now + rest * 1000), "PX", left)
  end
  return { GONE, now, left }
elseif value then
  -- RACE: two versions of a program with different intervals may run side by side, and call in turn.
  -- Each has its own interval counted. The stored end says only how long the turn is remembered, and
  -- is only raised here, so they do not change it to and fro.
  local left = untilEnd(tonumber(begin), now, every, aligned)
  if left > 0 then
    if call("PTTL", turn) < left then
      call("PEXPIRE", turn, left)
    end
    return { GONE, now, left }
  end
end
local ttl = lease
if ARGV[5] == "keep" then
  ttl = math.max(lease, untilEnd(now, now, every, aligned))
end
-- 16 digits, also on a server whose clock is in 1970.
begin = string.format("%016.0f", now)
call("SET", turn, "1r " .. begin .. " " .. hold, "PX", ttl)
return { OWNER, now, begin, ttl }
