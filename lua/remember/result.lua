-- Included: what is remembered, and for which callers. `found`: its text; nil if there is none.
-- `rest`: for how many ms new callers get it; 0 or less: only callers that have waited for its run, or
-- an earlier one. `digits`: the server's time, with 16 digits even if its clock is in 1970.
--
-- result   string "1<state> <token> <at> <owner> <keep> <fingerprint or -> <JSON>": the format at 1, the
--          state at 2, three numbers of 16 digits from 4, keep in ms from 55
--          state  v: a value; u: undefined; x: done, and its value could not be stored
--          token  of the run that made it
--          at     when it was stored, the server's time in µs
--          owner  the token of a later run that had the lock then; else zeros
--          Its TTL is keep, or RESULT_TTL if that is longer: a waiter whose message was lost finds it
local found, rest, digits = call("GET", result), 0, sub("000000000000000" .. text, -16)
if found then
  if not string.match(found, "^1[vux] %d+ %d+ %d+ %d+ [!-~]+ ") or sub(found, 54, 54) ~= " " then
    return redis.error_reply("WRONGTYPE The key of the result holds something else, or another format")
  end
  local keep, left = tonumber(string.match(found, "^%d+", 55)), call("PTTL", result)
  local longest = math.max(keep, RESULT_TTL)
  -- RACE: the server's clock was set back: it would be there for that much longer.
  if left > longest or left < 0 or sub(found, 21, 36) > digits then
    left = left < 0 and longest or math.min(left, longest)
    call("PEXPIRE", result, left)
  end
  rest = left - longest + keep
end
