-- Included after the ZADD of a new entry with `text` as its ticket. `count`: how many entries the
-- queue has now.
local count = call("ZCARD", queue)
if count == 1 then
  -- The key is new, and has no TTL yet.
  call("PEXPIRE", queue, "QUEUE_TTL")
else
  -- Only the newest entry may be last: if the server's clock went back, or a server with an earlier
  -- clock has taken over, earlier waiters still come before later ones. Otherwise newcomers would
  -- overtake them for all of that time, and a yield would return the lock to itself.
  if call("ZREVRANK", queue, entry) ~= 0 then
    call("ZADD", queue, call("ZRANGE", queue, -1, -1, "WITHSCORES")[2] + 1, entry)
  end
  -- Outlives the latest deadline, with a margin, so that few acquires that queue have to raise it.
  if call("PTTL", queue) < ENTRY_TTL / 1000 then
    call("PEXPIRE", queue, "QUEUE_TTL")
  end
end
-- RACE: a client that queues without a subscription has lost it, although an earlier re-check may
-- have reported that its receivers count. That would make the entry dead at every release, for its
-- whole time. Revoked, the report still keeps the client's other entries.
if string.byte(entry) == 48 then
  local channel = sub(hold, 1, (string.find(hold, " ", 1, true) or 0) - 23)
  local till = redis.pcall("ZSCORE", clients, "1" .. channel)
  if type(till) == "string" then
    -- In this order: without a member the key would be gone, and with it its TTL.
    call("ZADD", clients, till, "0" .. channel)
    call("ZREM", clients, "1" .. channel)
  end
end
