-- The fence: refuses a token that is smaller than the highest that the resource has seen, and
-- remembers it. It comes before the write, in the script that writes: included by set, and put before
-- the text of `fencedEval`.
--
-- KEYS  ..., fence   the last one is removed, so that what follows sees its own
-- ARGV  ..., "<token> <remember> <ttl>"   the last one is removed too
--         remember: ms within which a later token is remembered for sure · ttl: ms; both 0 = without limit
-- RETURNS as the WRITE that follows; or an error "STALETOKEN <highest token seen>" (0 = it is
--         forgotten), with nothing written
-- INVARIANTS  The token is remembered before the write: what follows may fail, and then the fence
--         has a higher token than any write, never a lower one. It is also the write that a full
--         Redis refuses, with nothing done.
--         No comment comes after code on its line, because `fencedEval` makes this one line.

do
  local fence = table.remove(KEYS)
  local token, remember, ttl = string.match(table.remove(ARGV), "^(%d+) (%d+) (%d+)$")
  local seen = redis.call("GET", fence)
  if seen and not string.match(seen, "^%d+$") then
    return redis.error_reply("WRONGTYPE The key of the fence holds something else")
  end
  if seen and tonumber(seen) > tonumber(token) then
    return redis.error_reply("STALETOKEN " .. seen)
  end
  if ttl == "0" then
    redis.call("SET", fence, token)
  else
    -- Nothing is remembered: there was no write for `remember`. A token is the time at which it was
    -- given, so a token younger than that is not older than any forgotten one. An older one may be.
    if not seen then
      local time = redis.call("TIME")
      if time[1] * 1000 + time[2] / 1000 - token / 1000 > tonumber(remember) then
        return redis.error_reply("STALETOKEN 0")
      end
    end
    redis.call("SET", fence, token, "PX", ttl)
  end
end
