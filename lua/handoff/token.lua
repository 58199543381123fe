-- Included on the common way to a token, where the server's time has 16 digits: puts the time, and
-- so many µs behind it as `passes` says, into the clock. `token`, which was nothing: the next one;
-- still nothing where only shared can tell: then `last` is what stood in the clock, and must stand
-- there again. `passes`: text; nothing for none. `try`: call or pcall; with pcall `last` is a table
-- where the clock's key is of another type.
local ahead = text
if passes then
  -- The six digits of the µs alone are reckoned with: a number of 16 digits costs a slow printf.
  local till = micros + passes
  ahead = till < 1000000 and seconds .. string.format("%06d", till) or string.format("%.0f", text + passes)
end
local last = try("GETSET", clock, ahead)
-- Texts of 16 digits compare as numbers do; other texts of that length, such as a time with a
-- fraction, are compared as numbers too before they count.
if not last or #last == 16 and last < text then
  token = text
elseif #last == 16 and (tonumber(last) or 0) >= tonumber(text) and tonumber(last) < 9007199254730000 then
  -- More tokens than µs: each acquisition reserves its passes, and several come in one packet.
  token = string.format("%.0f", last + 1)
  call("SET", clock, passes and string.format("%.0f", last + 1 + passes) or token)
end
