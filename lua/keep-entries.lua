-- Included by a re-check that leaves its hold in the queue. ARGV 5: ms for which the entries of the
-- client stay from now on; ARGV 6: "1": its receivers count, "0": they prove nothing, or it receives
-- nothing now.

-- The first write is one that a full Redis does not refuse: an existing entry is kept. It also
-- limits the set: a client that has gone is forgotten at the next re-check of another one.
call("ZREMRANGEBYSCORE", clients, 0, "(" .. text)
-- For a hold that is named with its label, the channel ends before both.
local channel, digit = sub(hold, 1, (string.find(hold, " ", 1, true) or 0) - 23), ARGV[6]
call("ZREM", clients, (digit == "1" and "0" or "1") .. channel)
call("ZADD", clients, now + ARGV[5] * 1000, digit .. channel)
for _, key in ipairs({ queue, clients }) do
  if call("PTTL", key) < tonumber(ARGV[5]) then
    call("PEXPIRE", key, 2 * ARGV[5])
  end
end
