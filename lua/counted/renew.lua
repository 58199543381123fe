-- Raises the ends of holds: the watchdog's renewal, a claim, an extension.
--
-- KEYS  1 to 100 hashes
-- ARGV  for each hash: 1 hold   2 ttl ms
-- RETURNS { ...all { RENEWED | GONE | TAKEN, ttl ms } }   ttl: 0 unless renewed
-- INVARIANTS  Never brings an end nearer, and never revives an expired hold. It reads no queue and
--         writes no books: the next reap in them may be early, never late. The first write is one that
--         a full Redis does not refuse.
-- MODEL  `renew` in proof/counted-server.pml

-- @include renewal
local answers = {}
for i, hash in ipairs(KEYS) do
  answers[2 * i - 1], answers[2 * i] = renewal(hash, ARGV[2 * i - 1], tonumber(ARGV[2 * i]), false)
end
return answers
