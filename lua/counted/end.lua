-- Included: ends a hold, or leaves it fewer units. The books are written by commit.

-- Units only shrink: a late copy, or one after a later command, takes nothing back. A writer that
-- keeps a unit becomes a reader. Its present token, local hand-offs included, becomes that of the
-- readers with it: resources that its own hand-offs have written would refuse the token of its
-- grant.
local function endHold(hold, mode, till, units, token, stays, present, label)
  used, isChanged, wrote = used - units + stays, true, true
  if stays == 0 then
    call("HDEL", hash, hold)
    holds = holds - 1
    return
  end
  call("HDEL", hash, "")
  if mode == "w" then
    -- RACE: late copies of an acquire and of this command, one after the other: the hold that the
    -- first one has made is newer than the token that this one says. The readers with it must not
    -- get that old token.
    present = format("%016.0f", present)
    mode, token = "r", present > token and present or token
    phase = token
  end
  put(hold, mode, till, stays, token, 0, label)
end
