-- Begins a turn, unless one runs, or the interval of the last one is not over.
--
-- KEYS  turn
-- ARGV  1 hold        never used before
--       2 lease ms    of the turn while it runs
--       3 every ms    how long a turn lasts
--       4 "1": turns are slots of the server's clock; "0": they count from the beginning of the last one
--       5 "keep": a crash does not free the turn before its end; "again": it does, after the lease
--       6 not after   server time in µs after which this command is stale
-- RETURNS { OWNER, now µs, begin µs, ttl ms }  { MINE, now µs, begin µs, ttl ms }   it runs for this hold
--         { HELD, now µs, ttl ms }             another one runs
--         { GONE, now µs, ms left }            it was done; the turn ends after that time
--         { STALE, now µs }                    nothing was done
-- INVARIANTS  At most one turn begins in an interval, unless one crashes and "again" was asked for.
--             If the clock was stepped back, an interval counts from the first of these commands
--             after the step.

-- @include start
-- @include ../handoff/time
local lease, every = tonumber(ARGV[2]), tonumber(ARGV[3])
-- RACE: a copy that the network delayed would begin a turn that no caller runs.
if now > tonumber(ARGV[6]) then
  return { STALE, now }
elseif isMine then
  local left = call("PTTL", turn)
  if left < lease then
    call("PEXPIRE", turn, lease)
    left = lease
  end
  return { MINE, now, begin, left }
elseif value then
  local left = call("PTTL", turn)
  -- RACE: the server's clock was stepped back after this turn began, and Redis ends the key by that
  -- clock: without a new end the job would not run for the whole step. With slots: until the end of
  -- the next one, so that a small step never runs a job twice in a slot.
  if not isRunning and tonumber(begin) > now then
    local most = ARGV[4] == "1" and untilEnd(now, now, every, true) + every or every
    if left > most then
      call("PEXPIRE", turn, most)
      left = most
    end
  end
  return { isRunning and HELD or GONE, now, left }
end
local ttl = lease
if ARGV[5] == "keep" then
  ttl = math.max(lease, untilEnd(now, now, every, ARGV[4] == "1"))
end
-- 16 digits, also on a server whose clock is in 1970.
begin = string.format("%016.0f", now)
call("SET", turn, "1r " .. begin .. " " .. hold, "PX", ttl)
return { OWNER, now, begin, ttl }
