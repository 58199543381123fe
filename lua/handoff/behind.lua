-- Included behind the ZADD of a new entry with `text` as its ticket. Only the newest entry may be at the end: when the
-- server's clock went back, or a server that is behind has taken over, who waits already stands before who comes now. Else
-- newcomers would pass for all of that time, and a yield would give the lock back to itself.
if call("ZREVRANK", queue, entry) ~= 0 then
  call("ZADD", queue, call("ZRANGE", queue, -1, -1, "WITHSCORES")[2] + 1, entry)
end
-- Outlives the furthest deadline, by so much that not everybody who queues has to raise it.
if call("PTTL", queue) < ENTRY_TTL / 1000 then
  call("PEXPIRE", queue, ENTRY_TTL / 500)
end
-- Who queues unheard has lost its subscription, and a re-check may have said before that its receivers count. That would make
-- the entry dead at every release, for as long as it stands; taken back, it still keeps the other places of the client.
if string.byte(entry) == 48 then
  local channel = sub(hold, 1, -23)
  local till = redis.pcall("ZSCORE", clients, "1" .. channel)
  if type(till) == "string" then
    call("ZREM", clients, "1" .. channel)
    call("ZADD", clients, till, "0" .. channel)
  end
end
