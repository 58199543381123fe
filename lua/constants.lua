-- The numbers that scripts and TypeScript share: in a script a name stands for its number, and
-- src/redis/lua.generated.ts exports them as `codes`. The first item of a reply is one of the first
-- twelve; it is the whole reply if there is nothing else to report.
-- A token that may be far from the server's time is answered as text: the parsers of clients round
-- integers close to 2^53.
OWNER = 1    -- the hold owns the lock from now on
MINE = 2     -- the hold owned it already, and its TTL was raised
HELD = 3     -- another hold owns it
GONE = 4     -- no hold owns it; of a re-check: the hold is neither queued nor the owner
STALE = 5    -- the command came too late, nothing was done
RELEASED = 6 -- the hold ended by its own command
TAKEN = 7    -- another hold owns what this one had
RENEWED = 8  -- the TTL of the hold was raised
BLOCKED = 9  -- the lock before this one is not owned by the same caller, nothing was done
DIFFERS = 10 -- of a counted resource: another number of permits is in use, nothing was done
CROWDED = 11 -- of a counted resource: it has as many holds as it may have, nothing was done
KEPT = 12    -- a result is remembered
HELD_PACKED = 4503599627370496 -- 2^52: from here on a number is HELD with all that belongs to it
ENTRY_TTL = 4500000 -- µs for which a queue entry counts without a re-check
QUEUE_TTL = 9000 -- ms: a queue's key outlives a new entry by twice that. A script has it in
             -- quotes: Redis makes a slow printf of each number that is an argument
TOKENS_AHEAD = 16 -- a hold reserves at most as many while the clock is ahead of the server's time
RESULT_TTL = 15000 -- ms: the shortest time for which a result stays for those that have waited for it
LATE_RESULT = 60000 -- ms: so long after its last proof of ownership a run may bring its result
READY_MOST = 256 -- waiters that one script tells of a result
RUN = 256    -- grants of a counted resource in one script
MOST_HOLDS = 10000 -- of a counted resource: what a scan can read in a few ms
MOST_TOLD = 16 -- of these, whose clients are notified when a caller waits
FEW_HOLDS = 256 -- of these: among more, no script searches for notified ones,
             -- which would take a ms and more
SCAN_PERIOD = 10000 -- ms: that long after the last scan the next script that reads the books always scans
