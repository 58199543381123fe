-- Shows the present leader.
--
-- KEYS  lock, leader
-- ARGV  none
-- RETURNS { token 0.., ttl ms, number 0.., said text, label text }
--         token 0: there is no leader; number 0: the leader has not proclaimed itself yet;
--         said: "<client id> <value>"
-- INVARIANTS  Changes nothing. What was proclaimed counts only while its term lasts.

-- @include start
if not value then
  return { "0", 0, 0, "", "" }
end
-- @include ../handoff/foreign
return { token, call("PTTL", lock), number or 0, rest or "", string.match(value, " ([^ ]*)", 38) or "" }
