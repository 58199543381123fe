-- Included after all writes if another client has the lock, and is notified of waiters (`value`): a
-- caller wants it. Does not name the asker's hold, because every client that receives the message
-- could then forge its grant. `nonce`: of a try, which asks for an answer; nil: a waiter.
local holder = string.match(value, "^[^ ]*", 38)
redis.pcall("PUBLISH", sub(holder, 1, -23), "recall " .. holder .. " " .. (nonce or "-") .. " " .. lock)
