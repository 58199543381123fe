-- Included if no caller is queued, and the hold is new: takes the units if they fit and nothing
-- needs correction, and returns. Otherwise nothing was done. `books`: a text, or nil if there is no
-- hash. It writes the same as commit.
local floor, units, permits, till
  = sub(text, 1, 13), ARGV[5], ARGV[6], format("%d", math.ceil(now / 1000) + ARGV[2])
-- A server whose long numbers have 32 bits cannot write an end this way: its text has other digits.
local fits = #till == 13 and #units == 7 and #permits == 7 and units <= permits
local used, holds, first, phase = units, "00001", till, "0000000000000000"
local rest, stamp, isShared
if fits and books then
  -- @include plain
  local sum, count = tonumber(sub(books, 4, 10)), tonumber(sub(books, 20, 24))
  fits = isPlain and sub(books, 12, 18) == permits and sum and count and count < MOST_HOLDS
  if fits then
    used, holds, first, phase
      = format("%07d", sum + units), format("%05d", count + 1),
        reap < till and reap or till, sub(books, 54, 69)
    -- Readers of one phase, with no writer between them, share its token.
    rest, stamp, isShared
      = sub(books, 40, 53), sub(books, 70), mode == "r" and sum > 0 and phase ~= "0000000000000000"
    fits = #used == 7 and used <= permits
  end
end
if fits then
  local token, passes, try = isShared and phase, ARGV[7], call
  if not token then
    passes = passes ~= "" and passes
    -- All of them: some are those of the callers that this hold is for.
    local most = passes
    -- @include ../handoff/token
    if not token then
      call("SET", clock, last)
    end
  end
  if token then
    call("HSET", hash, hold,
      "1" .. mode .. " " .. till .. " " .. units .. " " .. token .. (ARGV[10] or ""), "=",
      "1c " .. used .. " " .. permits .. " " .. holds .. " " .. first .. " " .. (rest or floor .. " ")
        .. (mode == "r" and token or phase) .. (stamp or " 0000000000000000"))
    -- The hash outlives the hold by a lease, as in put.
    local longer = 2 * ARGV[2]
    if not books or call("PTTL", hash) < longer then
      call("PEXPIRE", hash, longer)
    end
    if token == text then
      return text
    end
    return { OWNER, text, token, units, 0, 0 }
  end
end
