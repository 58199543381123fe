-- Included where the lock is another's, whose client is told of waiters (`value`), behind all
-- writes: somebody wants it. Says nothing of the asker's hold, because that would let every client
-- that hears it forge its grant. `nonce`: of a try, which asks for an answer; nothing: a waiter.
local holder = string.match(value, "^[^ ]*", 38)
redis.pcall("PUBLISH", sub(holder, 1, -23), "recall " .. holder .. " " .. (nonce or "-") .. " " .. lock)
