-- Included: ends the owner's hold. The first READY_MOST waiters are told that there is a result, in one
-- message each. If more wait, the next live one gets the lock, finds the result, and tells the next
-- ones: a chain of grants alone would let one process that stands still delay all after it.
-- `value`: the lock's. All messages go out after all writes.
local told = call("ZRANGE", queue, 0, READY_MOST - 1)
call("ZREMRANGEBYRANK", queue, 0, READY_MOST - 1)
handOver(call("ZPOPMIN", queue), sub(value, 21, 36))
for _, entry in ipairs(told) do
  local _, channel, _, _, _, waiter = read(entry)
  if channel then
    redis.pcall("PUBLISH", channel, "ready " .. waiter .. " " .. lock)
  end
end
