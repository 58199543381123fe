-- Included if the hold has its units already: a copy of a command that was executed, a re-check
-- that comes before the message, or a join. An end is only ever raised. RACE: a join of readers
-- raises their shared hold only if no caller is waiting; otherwise each of them would keep a writer
-- out for another lease.
local left = till - ms
if left < lease and not (joins and heads[1]) then
  till = math.min(ms + lease, NEVER)
  left = till - ms
  put(hold, mode, till, units, token, lease, sub(stored[2], 42))
end
if goes and heads[1] then
  advance(nil)
end
local waits = commit(false)
return { MINE, now, token, units, waits, left, more }
