-- Publishes the leader of this term, and its value, to all observers.
--
-- KEYS  lock, leader
-- ARGV  1 hold
--       2 number   of the proclamation, counted from 1 in each term
--       3 client   its id
--       4 value
--       5 ttl ms   twice the lease
--       6 news     the channel of the observers
-- RETURNS OWNER   only this has changed anything
--         MINE    this one or a later one is stored
--         GONE    the term is over
--         TAKEN
-- INVARIANTS  A late copy never undoes a later proclamation. The message only says that something
--         has changed.

-- @include start
if not value then
  return GONE
elseif sub(value, 38) ~= ARGV[1] then
  -- @include ../handoff/foreign
  return TAKEN
elseif number and number >= tonumber(ARGV[2]) then
  return MINE
end
-- The value is appended and not formatted, because a format would end it at its first byte 0.
call("SET", leader, "1 " .. token .. string.format(" %08.0f ", ARGV[2])
  .. ARGV[3] .. " " .. ARGV[4], "PX", ARGV[5])
redis.pcall("PUBLISH", ARGV[6], "changed " .. lock)
return OWNER
