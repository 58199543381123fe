-- Included in the common case of a token, if the server's time has 16 digits: writes to the clock
-- the time plus `passes` µs. `token`, which was nil: the next one; still nil if only shared can
-- decide: then `last` is the former content of the clock, and must be restored. `passes`: text; nil
-- for none; while the clock is ahead of the time, at most `most` of them count. `try`: call or pcall;
-- with pcall `last` is a table if the clock's key is of another type.
local ahead = text
if passes then
  -- Arithmetic only on the six digits of the µs: a number of 16 digits costs a slow printf.
  local till = micros + passes
  ahead = till < 1000000 and seconds .. string.format("%06d", till) or string.format("%.0f", text + passes)
end
local last = try("GETSET", clock, ahead)
-- Texts of 16 digits compare as numbers do; other texts of that length, such as a time with a
-- fraction, are compared as numbers too before they count.
if not last or #last == 16 and last < text then
  token = text
elseif #last == 16 and (tonumber(last) or 0) >= tonumber(text) and tonumber(last) < 9007199254730000 then
  -- More tokens than µs: each acquisition reserves its local hand-offs, and several come in one packet.
  token = string.format("%.0f", last + 1)
  call("SET", clock, passes and string.format("%.0f", last + 1 + math.min(passes, most)) or token)
end
