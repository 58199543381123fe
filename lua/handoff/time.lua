-- Included: the server's time in µs, as text and as a number. Its text is a token's too, so nobody writes 16 digits twice.
local time = call("TIME")
local text = time[1] .. sub("00000" .. time[2], -6)
local now = tonumber(text)
