-- Included: the server's time in µs, as text, which may be a token too: 16 digits are formatted only
-- once, and texts of 16 digits compare as numbers do. `seconds` and `micros`: its parts.
local time = call("TIME")
local seconds, micros = time[1], time[2]
local text = #micros == 6 and seconds .. micros or seconds .. sub("00000" .. micros, -6)
