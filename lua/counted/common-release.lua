-- Included if a hold with the text `field` ends, and no caller is queued: ends it if nothing needs
-- correction, and returns. Otherwise nothing was done. It writes the same as endHold and commit.
local floor, units = sub(text, 1, 13), sub(field, 18, 24)
-- @include plain
-- RACE: an expired hold is not ended here, as in books.
if isPlain and string.byte(field) == 49 and sub(field, 4, 16) > floor then
  local holds, used = sub(books, 20, 24), sub(books, 4, 10)
  if holds == "00001" and used == units then
    call("DEL", hash)
    return RELEASED
  end
  local count, rest = tonumber(holds), tonumber(used) and tonumber(units) and used - units
  if count and rest and count > 1 and rest > 0 then
    call("HDEL", hash, hold)
    call("HSET", hash, "=",
      "1c " .. format("%07d", rest) .. sub(books, 11, 19) .. format("%05d", count - 1) .. sub(books, 25))
    return RELEASED
  end
end
