-- Included: the hold does not exist. The last token of the clock, if readable, shows whether a copy
-- has ended it.
local last = redis.pcall("GET", clock)
return { GONE, type(last) == "string" and last or 0, more }
