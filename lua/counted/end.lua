-- Included: ends a hold, or leaves it fewer units. The books are written by commit.

-- Units only shrink: a late copy, or one behind a later command, takes nothing back. A writer that
-- keeps a unit becomes a reader; its present token, passes included, is that of the readers beside
-- it: with the token of its grant they would be refused where its own passes have written.
local function endHold(hold, mode, till, units, token, stays, present, label)
  used, isChanged, wrote = used - units + stays, true, true
  if stays == 0 then
    call("HDEL", hash, hold)
    holds = holds - 1
    return
  end
  call("HDEL", hash, "")
  if mode == "w" then
    mode, token = "r", format("%016.0f", present)
    phase = token
  end
  put(hold, mode, till, stays, token, 0, label)
end
