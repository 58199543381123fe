-- Takes the units away from all holds, from all of one mode, from those with one token, or from one
-- hold, notifies their clients, and grants the units to waiters.
--
-- KEYS  hash, queue, clients, clock
-- ARGV  1 mode     "": all
--       2 label    of the caller for the holders, as one word; "": none
--       3 token?   of the hold that is meant, 16 digits: readers share theirs; "": all
--       4 holder?  the hold that is meant; "": all
-- RETURNS { count 0.., more 0|1 }   count: of ended holds; more: as in acquire
-- INVARIANTS  Removes no waiter. All messages go out after all writes.

-- @include start
-- @include ../handoff/time
-- @include field
local hold, number, looks, queues = "", 0, false, false
local stored = call("HMGET", hash, "=", hold)
-- @include books
-- @include shared
local meant = ARGV[3] or ""
local all, ended = call("HGETALL", hash), {}
for i = 1, #all, 2 do
  local mode, till, units, token = readField(all[i + 1])
  if all[i] ~= "=" and mode and till >= ms and (ARGV[1] == "" or mode == ARGV[1])
    and (meant == "" or token == meant) and (not ARGV[4] or all[i] == ARGV[4]) then
    table.insert(ended, all[i])
    used, holds, isChanged = used - units, holds - 1, true
  end
end
for i = 1, #ended, 1000 do
  call("HDEL", hash, unpack(ended, i, math.min(i + 999, #ended)))
  wrote = true
end
if heads[1] then
  advance(nil)
end
commit(false)
for _, one in ipairs(ended) do
  redis.pcall("PUBLISH", sub(one, 1, -23),
    "revoked " .. one .. " " .. hash .. (ARGV[2] ~= "" and " " .. ARGV[2] or ""))
end
return { #ended, more }
