-- Included: the parts of a hold's field: its mode, its end in ms, its units as a number, its token as
-- text; nothing if it cannot be read, or does not exist.
local function readField(field)
  local mode, till, units, token = match(field or "", "^1([rwp]) (%d+) (%d+) (%d+)")
  if mode and #till == 13 and #units == 7 and #token == 16 then
    return mode, tonumber(till), tonumber(units), token
  end
end
