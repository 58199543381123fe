-- Included, behind shared, by the scripts that work on several locks. From then on the functions of shared.lua work on the
-- i-th of them.
local function turnTo(i)
  lockKey, queueKey, waitersKey, clockKey = unpack(KEYS, 4 * i - 3, 4 * i)
end
