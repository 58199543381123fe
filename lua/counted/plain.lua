-- Included in the common case, with `books` as text. `isPlain`: the number of permits comes from
-- code, no holder needs a notification, no hold can have expired, and no scan is due. All other
-- cases, and unreadable text, are left to books.lua. Texts are cut by position: a pattern costs
-- twice as much.
-- `floor`: the server's time in ms, rounded down, as text: a hold that ends later has not expired.
-- `reap`: the end of the first hold.
local reap, since = sub(books, 26, 38), seconds - (tonumber(sub(books, 40, 49)) or 0)
local isPlain = #books == 86 and sub(books, 1, 3) == "1c " and reap > floor
  and since >= 0 and since < SCAN_PERIOD / 1000
