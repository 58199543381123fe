-- Included where the hold has its units already: a copy of a command that was executed, a re-check
-- that comes before the message, or a join. An end is only ever raised. RACE: what readers ask of a
-- hold that they share raises it only where nobody waits: else each of them would keep a writer
-- away for a lease more.
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
