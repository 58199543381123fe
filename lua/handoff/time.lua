-- Included: the server's time in µs, as text and as a number.
-- @include time-text
local now = tonumber(text)
