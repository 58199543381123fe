-- Included on the common ways, with `books` as text. `isPlain`: the number of permits comes from
-- code, nobody is told that somebody waits, no hold can be over, and no scan is due. All else, and
-- what cannot be read, is left to books.lua. Texts are cut by place: a pattern costs twice as much.
-- `floor`: the server's time in ms, rounded down, as text: what ends later is not over. `reap`: the
-- end of the first hold.
local reap, since = sub(books, 26, 38), seconds - (tonumber(sub(books, 40, 49)) or 0)
local isPlain = #books == 86 and sub(books, 1, 3) == "1c " and reap > floor
  and since >= 0 and since < SCAN_PERIOD / 1000
