-- Included behind the GETSET that put the server's time, and the passes, into the clock: `last` is what stood there. `token`:
-- the next one; nothing where only shared can tell. Texts of 16 digits compare as numbers do; other texts of that length, such
-- as a time with a fraction, are compared as numbers too before they count.
local token
if not last or #last == 16 and last < text then
  token = text
elseif #last == 16 and (tonumber(last) or 0) >= now and tonumber(last) < 9007199254730000 then
  -- More tokens than µs: each acquisition reserves its passes, and several come in one packet.
  token = string.format("%.0f", last + 1)
  call("SET", clock, passes == "0" and token or string.format("%.0f", last + 1 + passes))
end
