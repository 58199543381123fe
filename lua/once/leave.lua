-- Takes back a turn whose body never ran: it began, and its caller has gone or never got the answer.
--
-- KEYS  turn
-- ARGV  1 hold
-- RETURNS RELEASED   it was running for this hold
--         GONE
-- INVARIANTS  Safe to send any number of times, at any time: a hold's id is never reused.

-- @include start
if not isMine then
  return GONE
end
call("DEL", turn)
return RELEASED
