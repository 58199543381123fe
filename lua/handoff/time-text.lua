-- Included: the server's time in µs, as text, which is a token's too: nobody writes 16 digits
-- twice, and texts of 16 digits compare as numbers do. `seconds` and `micros`: what it was made of.
local time = call("TIME")
local seconds, micros = time[1], time[2]
local text = #micros == 6 and seconds .. micros or seconds .. sub("00000" .. micros, -6)
