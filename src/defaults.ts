// Every default and every tuned number, with its reason. Times are milliseconds.

// ---- Bounds of arguments

export const LEASE_MIN = 10;
export const NAME_BYTES_MAX = 512;
export const LABEL_BYTES_MAX = 64;
/**
 * A caller whose wait is over waits at most this long to learn which caller holds the lock: several
 * round trips.
 */
export const HOLDER_REPLY = 100;
/** The most waiters that `inspect()` shows. */
export const SHOWN_MAX = 1_000;
/**
 * A leader's value: room for addresses, not for documents. Every observer reads it with each query.
 */
export const VALUE_BYTES_MAX = 4_096;
/** A lease below this, in ms, was usually meant in seconds. */
export const SHORT_LEASE = 100;
/** Permits of a semaphore. A writer of a read-write lock has as many units. */
export const PERMITS_MAX = 1_000_000;
/** Members of a multi-lock: bounds how many commands one call sends at once. */
export const MEMBERS_MAX = 100;
/** The most local hand-offs: each hold reserves a fencing token for every one of them. */
export const PASSES_MAX = 1_000;
/** The smallest number of nodes of which one may fail. */
export const QUORUM_MIN = 3;

// ---- Leases and clocks

/** The lease when none is given; the watchdog renews it. Redisson's `lockWatchdogTimeout`. */
export const LEASE_TIME = 30_000;
/** The watchdog renews when a third of the lease is over: two more tries fit in before it ends. */
export const RENEWALS_PER_LEASE = 3;
/**
 * A renewal includes leases that are due within this part of a renewal period: 1 000 leases are a
 * dozen calls, not 1 000.
 */
export const RENEWAL_LOOKAHEAD = 0.25;
/** Locks in one renewal call: Redisson's batch. Bounds how long one script occupies the server. */
export const RENEWAL_BATCH = 100;
/**
 * Locks whose renewals are sent in one turn of the event loop, which takes some ms. The rest
 * follows in the next turns.
 */
export const RENEWALS_PER_TURN = 200;
/** Clock rates differ by less than this: the local deadline comes before the server's. */
export const CLOCK_DRIFT = 0.01;
/** Redis stores expiry times in whole milliseconds; subtracted from every local deadline. */
export const CLOCK_GRAIN = 2;
/**
 * Members of a multi-lock that are held while it waits for others live at least this long: their
 * renewals must keep up even if the lease is short. Others pay for it only if this process crashes
 * meanwhile, and not more than for a grant.
 */
export const MULTI_LOCK_LEASE = 3_000;

// ---- Answers

/** How long a command may stay unanswered. */
export const REPLY_TIMEOUT = 5_000;
/**
 * A silent connection that the client opened is replaced after `replyTimeout`, then after twice as
 * long …, up to this.
 */
export const SILENCE_MAX = 60_000;
/**
 * A command that leaves this process this many ms after its call was delayed: the event loop was
 * blocked.
 */
export const HELD_BACK = 10;
/** The first command of a call with a short wait, or none, gets at least this long. */
export const FIRST_REPLY = 500;
/**
 * How long a client that may have a lock cached may take to answer a question that another command
 * asks in passing.
 */
export const KEEPER_REPLY = 50;
/** The same for `recall()`, whose only purpose is to ask. */
export const RECALL_WAIT = 1_000;
/** An unanswered command about the lock that is older than this makes "busy" uncertain. */
export const UNANSWERED = 500;
/** How long replicas may take to acknowledge a lock, if the client wants that. */
export const REPLICA_TIMEOUT = 1_000;
/** Between tries after Redis failed: 50, 100, 200 … ms. */
export const RETRY_MIN = 50;
export const RETRY_MAX = 2_000;
/** A connection of the client's own that leads to a replica is replaced this often. */
export const REPLICA_REST = 1_000;
/** Between searches for the node that a release channel's slot has moved to: 25, 50, 100 … ms. */
export const REROUTE_MIN = 25;
export const REROUTE_MAX = 1_000;
/** The self-test of a subscriber: the least time between two, and how long its message may take. */
export const SELF_TEST_EVERY = 5_000;
export const SELF_TEST_REPLY = 1_000;
/**
 * A connection for messages that has failed for this long is reported, and one that the server has
 * closed this many times, each time before it was ready for `DEAF_STEADY`. A failover is shorter.
 */
export const DEAF_AFTER = 2_000;
export const DEAF_LOSSES = 5;
export const DEAF_STEADY = 10_000;
/** The same reason is reported again after this time, while it lasts. */
export const DEAF_AGAIN = 60_000;
/** A client warns of the same trouble again after this time. */
export const WARN_AGAIN = 60_000;
/** How long `check()` may take: a readiness probe waits a second or a few. */
export const CHECK_TIMEOUT = 2_000;
/** How long `close()` lets holders finish. */
export const GRACE = 5_000;

// ---- Handing on

/** The TTL of a lock that was granted by message, until its new holder is known to be awake. */
export const GRANT_WINDOW = 3_000;
/** A watchdog lease granted by message is raised to its full lease once it was held this long. */
export const CLAIM_AFTER = 100;
/**
 * Local hand-offs before the lock goes to the next process. `hot-4x4`: 8 gave 40 000
 * acquisitions/s, 16 gave 70 000 with the same p99 of the wait (1.2 ms). Holds of 1 ms pay with a
 * longer p99 (74 ms, with 8: 46 ms).
 */
export const LOCAL_HANDOFFS = 16;
/**
 * The same for a lock that may stay cached: its users want the rate. With 32 processes that each
 * take one lock again at once, 16 gave 21 000 acquisitions/s, 32 gave 37 000, and 48 gave 50 000.
 */
export const LINGERING_HANDOFFS = 48;
/**
 * Local hand-offs happen only this long after a grant: with longer holds a hand-off through Redis
 * costs relatively little, and is fair.
 */
export const PASS_TIME = 25;
/**
 * Readers enter a hold of their process without a round trip for this many ms, counted from the
 * sending of the last query to which Redis answered that no caller waits. A writer waits at most
 * that much longer, and all readers of a process query once in that time.
 */
export const SHARE_TIME = 25;
/**
 * Of an explicit lease this part must be left when it is handed out; otherwise it is raised first.
 */
export const ENOUGH_EXPLICIT = 0.9;
/** Of a watchdog lease, cut to the grant window, this part must be left: the claim follows soon. */
export const ENOUGH_WATCHDOG = 0.5;
/**
 * A hold that lives longer than this many of the next holder's leases is not handed on locally: if
 * the next holder crashed, all others would wait for the rest.
 */
export const TOO_MUCH = 1.5;

// ---- Lingering

/**
 * The TTL of a lock that may stay with its process after an unlock, unless the grant window is
 * shorter: after that process has died, others wait this long.
 */
export const STAY_WINDOW = 3_000;
/** The most locks that one client caches. Each takes 0.2 KB in Redis. */
export const KEPT_MOST = 10_000;
/**
 * A name is worth caching if that saves LINGER_WORTH pairs of commands before another process wants
 * it, on average over the last LINGER_TIMES times. A recall costs nearly as much: its two messages
 * are written and read alone, where commands of several callers share a write, and writes cost the
 * most.
 */
export const LINGER_WORTH = 2;
export const LINGER_TIMES = 8;
/**
 * The most that one time counts: a name that was used a million times must be forgotten soon after
 * it moves.
 */
export const LINGER_SAVED_MAX = 16;
/**
 * What a new client expects of a name. After eleven useless recalls it expects less than
 * `LINGER_WORTH` …
 */
export const LINGER_AVERAGE = 4;
/**
 * … and caches only every 32nd name that it considers, as a test. If tests save little on average
 * it is fewer, down to every 1 024th.
 */
export const LINGER_TRIES = 32;
export const LINGER_TRIES_MAX = 1_024;
/** After a useless recall a name is not cached for 1, 2, 4 … 30 s. */
export const LINGER_REST_MIN = 1_000;
export const LINGER_REST_MAX = 30_000;

// ---- Stays: callers of one process come and go in one hold

/**
 * A caller gets the lock without a round trip only this long after the sending of the last command
 * that Redis answered with "yours". It limits how long a process continues after its lock is lost,
 * or wanted by another process, when no message says so.
 */
export const FRESH = 100;
/** A stay in use is renewed this long after its last renewal was sent: half of that time. */
export const STAY_RENEWAL = FRESH / 2;
/** How often idle stays are checked. */
export const KEPT_SWEEP = 250;
/**
 * A client that could cache locks if it received messages subscribes, and tries that again after
 * this long.
 */
export const HEAR_AGAIN = 1_000;
/**
 * A recall that was read this much later than a timer was due was delayed by a blocked event loop.
 */
export const RECALL_LATE = 400;
/** Callers come and go without a round trip for at most this long before the event loop turns. */
export const TURNS_TIME = 1;

// ---- Waiting

/**
 * If SUBSCRIBE takes longer, the client tries the lock anyway, then again after twice as long …: it
 * may be free by now.
 */
export const SUBSCRIBED_SOON = 100;
/**
 * How long a parked hold sleeps, by its position in the queue. Shorter than the grant window: a
 * lost message must not cost the hold its grant.
 */
export const RECHECKS = [
  { before: 8, period: 1_500 },
  { before: 100, period: 3_000 },
  { before: Number.POSITIVE_INFINITY, period: 10_000 },
] as const;
/** An unknown position: the first re-check of a far place comes early and moves its deadline. */
export const UNKNOWN_POSITION = 8;
/**
 * Re-checks are spread by this part of their period, so that waiters of one lock do not come at the
 * same time.
 */
export const RECHECK_SPREAD = 0.25;
/** A waiter that re-checks for an expired lock adds up to this much to the holder's TTL. */
export const EXPIRY_JITTER = 50;
/** A queue entry lives this many re-check periods, and never less than PATIENCE_MIN. */
export const PATIENCE_PERIODS = 3;
export const PATIENCE_MIN = 4_500;
/**
 * A caller that has waited for this many of its leases, always for one holder in its own process,
 * is warned of a deadlock. Callers that each hold for longer than a lease are no deadlock.
 */
export const SELF_WAIT_LEASES = 2;
/**
 * A caller that has waited this long in a scope writes a note, and again at this interval. Most
 * callers never do. If the notes show a circle, it is found sooner.
 */
export const DEADLOCK_AFTER = 5_000;
export const DEADLOCK_AGAIN = 1_000;
/**
 * A caller whose lease ends before it can have it is retried for at least this long. Then it is
 * refused if even the fastest answer took more than this part of the lease, and after this many
 * tries in any case.
 */
export const OUTRUN_PATIENCE = 1_000;
export const OUTRUN_SHARE = 0.4;
export const OUTRUN_TRIES = 10;
/** The same for several locks, whose lease begins when all are held: this many tries in a row. */
export const OUTRUN_ROUNDS = 3;
/**
 * The time between the first and the last node's message about one release. After that it counts,
 * however few nodes have reported.
 */
export const WAKE_SPREAD = 100;
/**
 * Wake-ups that prove to be forged lead to one try in this time. Genuine ones are not delayed:
 * after them the lock has changed hands. A genuine wake-up that a try has overtaken, which finds
 * nothing new, comes alone.
 */
export const WAKE_REST = 50;
/**
 * A `tryLock()` for several locks that got only some of them retries once after a random time
 * between these: some round trips, so that of two calls in each other's way one is gone when the
 * other comes back.
 */
export const OVERLAP_MIN = 1;
export const OVERLAP_MAX = 5;

// ---- Spin locks

/**
 * Between the tries of a spin lock: 1, 2, 4 … 128 ms, as in Redisson's spin lock; each is shortened
 * by up to this part, at random.
 */
export const SPIN_MIN = 1;
export const SPIN_MAX = 128;
export const SPIN_SPREAD = 0.5;
/**
 * After its turn a process stays away from a spin lock for this part of the time that it held it,
 * so that others find it free.
 */
export const SPIN_REST = 0.25;
/** A spin lock is tried once more when this much is left of the wait: enough for the answer. */
export const SPIN_LAST_TRY = 5;

// ---- Elections

/**
 * An observer queries again after this part of the leader's time, at random between the two: before
 * its answer expires.
 */
export const OBSERVE_EARLY = { from: 0.5, to: 0.75 } as const;
/**
 * With less than this left, in ms, it queries after the end: by then a live leader has renewed,
 * even one with the shortest lease.
 */
export const OBSERVE_LEAST = 50;
/**
 * It always queries again after this long, plus or minus RECHECK_SPREAD: the message about a change
 * may be lost.
 */
export const OBSERVE_PERIOD = 10_000;
/**
 * The same where no messages are received, and where the leader has not published its value yet.
 */
export const OBSERVE_UNHEARD = 1_000;
/**
 * After a message that brought nothing new it does not query again before this is over: any
 * client may send them.
 */
export const NEWS_REST = 50;
/**
 * The pause before a leader that has lost its term campaigns again; doubled each time that its body
 * has thrown, up to the second one.
 */
export const CAMPAIGN_AGAIN = 150;
export const CAMPAIGN_AGAIN_MAX = 5_000;

// ---- Lists for people

/**
 * How many keys of its table Redis scans in one step of a list: less than a millisecond of its
 * time.
 */
export const SCAN_COUNT = 512;
/** How many locks are inspected at a time, while other commands of the connection wait. */
export const LIST_BATCH = 64;
/** A lock that a list has shown is remembered until this many others were shown. */
export const LISTED_REMEMBERED = 20_000;

// ---- Fencing and transactions

/**
 * How long a fence remembers the highest token after the last write: longer than a process that
 * resumes has slept.
 */
export const FENCE_MEMORY = 24 * 3_600_000;
/**
 * Tokens are the time in µs; a smaller one (2001-09) is a counter, such as Redisson's, and has no
 * age.
 */
export const TIME_TOKEN_MIN = 1e15;
/**
 * A fence is stored this much longer: the clocks of the lock's server and the resource's may differ
 * by it.
 */
export const FENCE_SKEW = 60_000;
/**
 * How often `optimistic` runs a body again. One process that wants one key a thousand times at once
 * needed at most 17 tries; of two such processes 96 % of the calls were done in 17, of four 75 %:
 * that is work for a lock.
 */
export const TRANSACTION_RETRIES = 16;
/** The pause before a body runs again after a conflict: random up to 2, 4, 8 … ms. */
export const CONFLICT_PAUSE_MIN = 2;
export const CONFLICT_PAUSE_MAX = 250;
/**
 * Transactions that one caller's connection has under way; the others queue. More would only
 * conflict more.
 */
export const TRANSACTIONS_AT_ONCE = 8;
/** A connection for transactions is closed after being unused for this long. */
export const CONNECTION_IDLE = 10_000;

// ---- Quorums

/**
 * How long a node of a quorum may leave a vote unanswered. It only matters if the others cannot
 * decide without that node, and is short enough for an answer within FIRST_REPLY, with a sweep of
 * 50 ms.
 */
export const NODE_TIMEOUT = 400;
/**
 * After a split vote: a random time up to this one, plus EXPIRY_JITTER. Some round trips, so that
 * the first client to come back usually has all votes before the second asks.
 */
export const RETRY_DELAY = 150;
/**
 * The longest lease of a quorum lock, because a node that restarted stays out for this long. The
 * same for every client of the nodes, so it does not follow `leaseTime`: twice the default one.
 */
export const LONGEST_LEASE = 60_000;
/**
 * When a node that did not vote for a lease is first asked to take it, and again after twice as
 * long …: time for the loser of a race to give its vote back. Shorter leases need none.
 */
export const REPAIR_MIN = 10;
/**
 * A lease of a quorum without renewals asks its nodes whether they still have it each time that
 * this part of it is over. A little more than the watchdog's third, so nothing more is sent where
 * that renews.
 */
export const LOOK_PART = 0.4;
/**
 * How long a lease must have had only a bare majority before that is reported: longer than the
 * aftermath of a race, or one late answer.
 */
export const EXPOSED_AFTER = 1_000;
/**
 * A node that did not answer a renewal is asked again after this time, and once more, before its
 * lease is reported as exposed. Twice, because late answers are not read: the first time only
 * probes the node.
 */
export const LATE_AGAIN = EXPOSED_AFTER / 3;
export const LATE_TRIES = 2;
/**
 * Votes that took longer than this part of `nodeTimeout` are checked once more before the caller
 * gets the lease.
 */
export const PROMPT_PART = 0.5;
