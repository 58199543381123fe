-- Included: nobody has the hold, and the last token of the clock, as far as it can be read, tells
-- whether a copy has ended it.
local last = redis.pcall("GET", clock)
return { GONE, type(last) == "string" and last or 0, more }
