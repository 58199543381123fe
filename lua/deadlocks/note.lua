-- Writes a note about a caller that waits while its scope holds locks, or removes it; and follows
-- from note to note which callers block it. All of that is true at one moment, because a script is
-- atomic.
--
-- KEYS  waits       a sorted set with one score: "<ref> <end ms> <id> <note>", in the order of the
--                   refs, which stand for locks
-- ARGV  1 id       of the wait
--       2 life ms  how long the note counts; 0: it is removed, and nothing is followed
--       3 note     its first word has the refs that are waited for, with commas
--       4 held     how many of the next are held by the scope
--       5 refs...  of what the scope holds; then those under which an older note of this wait may be
-- RETURNS { at µs, ...notes { note text } }   "<id> <note>" of the callers that hold what this one waits
--         for, that hold what those wait for, and so on
-- INVARIANTS  Reads at most 64 refs and 16 notes of each. A late copy leaves a note that ends by
--         itself.

local call, sub, match = redis.call, string.sub, string.match
-- @include ../handoff/time
local waits, id, life, note = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3]
local ms = math.floor(now / 1000)

local function read(member)
  local till, whose, text = match(member, "^%S+ (%d+) (%S+) (%S+ .+)$")
  local left = tonumber(till or 0) - ms
  -- A note that ends later was not written by this library.
  if left > 0 and left <= 60000 then
    return whose, text
  end
end

local function notesOf(ref)
  return call("ZRANGE", waits, "[" .. ref .. " ", "(" .. ref .. "!", "BYLEX", "LIMIT", 0, 16)
end

for i = 5, #ARGV do
  local others = 0
  for _, member in ipairs(notesOf(ARGV[i])) do
    local whose = read(member)
    if not whose or whose == id then
      call("ZREM", waits, member)
    else
      others = others + 1
    end
  end
  if life > 0 and others < 16 and i < 5 + tonumber(ARGV[4]) then
    call("ZADD", waits, 0, table.concat({ ARGV[i], ms + life, id, note }, " "))
  end
end
local found = { now }
if life == 0 then
  return found
end
call("PEXPIRE", waits, 60000)
-- The notes of killed processes are removed a few at a time.
local from = now % math.max(call("ZCARD", waits), 1)
for _, member in ipairs(call("ZRANGE", waits, from, from + 3)) do
  if not read(member) then
    call("ZREM", waits, member)
  end
end
local refs, known, seen = {}, {}, { [id] = true }
local function follow(text)
  for ref in string.gmatch(match(text, "^%S+"), "[^,]+") do
    if not known[ref] and #refs < 64 then
      known[ref] = true
      table.insert(refs, ref)
    end
  end
end
follow(note)
local at = 1
while refs[at] do
  for _, member in ipairs(notesOf(refs[at])) do
    local whose, text = read(member)
    if whose and not seen[whose] then
      seen[whose] = true
      table.insert(found, whose .. " " .. text)
      follow(text)
    end
  end
  at = at + 1
end
return found
