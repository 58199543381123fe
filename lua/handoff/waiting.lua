-- Included after `entries` of the queue were read: appends those of our format to the answer.
for i = 1, #entries, 2 do
  local hold = string.match(entries[i], "^[01] %d+ %d+ ([^ ].*)")
  if hold then
    table.insert(shown, hold)
    table.insert(shown, entries[i + 1])
  end
end
