-- Included: the parts of an entry of the queue: its hold, digit, mode, grant TTL, passes, units, up to
-- how many, the number of permits that its caller knows, and its label with a space before it;
-- nothing if the entry cannot be read.
local function readEntry(entry)
  local digit, mode, ttl, passes, units, upTo, number, hold, label =
    match(entry, "^([01])([rwp]) ([1-9]%d*) (%d+) ([1-9]%d*) ([1-9]%d*) (%d+) ([^ ]+)(.*)$")
  if hold and #ttl < 13 and #passes < 5 and #units < 8 and #upTo < 8
      and #number < 8 and string.byte(hold, -22) == 58 then
    return hold, digit, mode, tonumber(ttl), tonumber(passes), tonumber(units),
      tonumber(upTo), tonumber(number), label
  end
end
