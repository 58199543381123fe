/* Stays: what a lock, its messages and a lock queue have besides (STAYS). README.md says what is
 * modelled.
 *
 *   KEEPERS=n        lock queues 0 to n - 1 keep the lock when it is unlocked (linger); the others
 *                    do not
 *   ENDLESS=n        lock queues 0 to n - 1 always have another caller
 *   MUTE             only lock queue 0 sends recalls
 *   CLAIMS           a hold may be claimed for the full lease at any time
 *   BODY=n           callers stay inside for n ticks at the most
 *   RESERVES_IF_LIKELY   an acquire that wins the lock at once reserves no tokens, because no other
 *                    caller of its process waited when it was sent
 *   CAN_LOSE CAN_FORGE CAN_DROP CAN_CRASH_KEPT   faults: the lock's key is deleted, anybody
 *                    publishes, one message is lost, a client crashes while it has the lock and
 *                    nobody is inside */
#define STAY 10      /* a renewal of a stay, for the window */
#define SET_IDLE 11
#define KEPT 9       /* unlocked, and still ours: nobody is inside */
#define LEAVING 10   /* unlock() has resolved, and its release is not sent yet */

#ifdef STAYS
#ifndef KEEPERS
#define KEEPERS 1
#endif
#ifndef ENDLESS
#define ENDLESS 0
#endif
#ifndef BODY
#define BODY 0
#endif
#ifndef LINGER
#define LINGER 1
#endif
#ifndef FRESH
#define FRESH 1
#endif
#define KEEPER(t) ((t) < KEEPERS)
#define LEASE_OF(id) (KEEPER(QUEUE_OF(id)) -> WINDOW : LEASE)
#define IN_STAY(t) (st[t] == HOLDING || st[t] == KEPT || st[t] == LEAVING)
#define TELLS(kind_) (kind_ == TRY || kind_ == STAY)
#define IS_READ_BY(t) true
#define ALL_COME_AGAIN true
#ifdef TOKENS
#define HAS_TIME (clk < CLOCKS)
#else
#define HAS_TIME true
#endif
#if QUEUES > 2
#define MAY_SERVE (HAS_TIME && heard[0].n < 2 && heard[1].n < 2 && heard[2].n < 2)
#else
#define MAY_SERVE (HAS_TIME && heard[0].n < 2 && heard[1].n < 2)
#endif
#define IS_RECALL cf

byte told;                     /* of the lock: is its holder told of waiters? 2: and it may be idle */
byte sure[QUEUES];             /* what is left of the time in which a turn may begin without asking */
bool want[QUEUES];             /* somebody else wants the lock */
bool tells[QUEUES];            /* Redis has answered that it tells us of waiters */
#ifdef CLAIMS
byte asked[QUEUES];            /* how long the hold may live yet, by all that was ever asked for it */
#define ASKED(t) asked[t]
#else
#define ASKED(t) 0
#endif
byte idle[QUEUES];             /* until an idle stay ends */
byte inside[QUEUES];           /* how long the caller is inside */
#ifdef MEMORY
byte unseen[QUEUES];           /* for the check: since Redis last saw that the hold is the owner */
#endif
#ifdef TOKENS
#ifndef CLOCKS
#define CLOCKS 17
#endif
byte clk = 10;                 /* the server's time, in units of tokens */
byte spent[QUEUES];             /* tokens used in this stay, above that of the grant */
byte reserves[QUEUES];          /* how many of these Redis has reserved, as far as the client knows */
byte upto[QUEUES];             /* the server's time of the last reply that said "yours" */
byte asksInRow[QUEUES];        /* for the check */
#define TURN_TOKEN(t) (token[t] + spent[t])
#endif
#ifdef CAN_FORGE
byte leaked;                   /* a waiting hold that everybody knows */
#endif

#ifdef FLAW_GRANT_SAYS_NOTHING
#define GRANT_WAITS false
#else
#define GRANT_WAITS (qn > 0)
#endif
#if defined(FLAW_TAKEN_FROM_THE_DEAF)
#define TAKES_OVER (own != 0 && told == 2 && !sub[CLIENT(QUEUE_OF(own))])
#elif defined(FLAW_IDLE_FLAG)
#define IDLE_TOLD 3
#define TAKES_OVER (own != 0 && told == IDLE_TOLD)
#else
#define TAKES_OVER false
#endif
#ifdef FLAW_LAPSE
#define LAPSES(t) (st[t] == KEPT)
#else
#define LAPSES(t) false
#endif
#ifdef FLAW_RENEWED_FROM_RECEIPT
#define RENEWAL_AGE 0
#else
#define RENEWAL_AGE ca
#endif
#ifdef MUTE
#define RECALLS(id) (QUEUE_OF(id) == 0)
#else
#define RECALLS(id) true
#endif

/* Without a limit while nobody else wants it; a holder that is not told of waiters has the passes
 * of a grant. */
#define FREELY(t) (!want[t] && tells[t])
#if defined(TERMS) && !defined(FLAW_ENOUGH_FOR_ANYBODY)
#define IS_ENOUGH(t) (dl[t] >= WINDOW)
#else
#define IS_ENOUGH(t) true
#endif
#define MAY_PASS(t) (FREELY(t) || passes[t] < PASSES)
#ifdef FLAW_NO_FRESHNESS
#define IS_FRESH(t) true
#else
#define IS_FRESH(t) (sure[t] > 0)
#endif
#ifdef TOKENS
#define HAS_TOKEN(t) (spent[t] < reserves[t] || TURN_TOKEN(t) < UPTO(t))
/* Is what is answered with "yours" known to have reserved tokens? "Mine" does not say which command
 * has won the lock. */
#define IS_GRANT (ck == AGAIN && cr == OWNER)
#ifdef FLAW_TOKENS_BY_OWN_CLOCK
#define UPTO(t) clk
#else
#define UPTO(t) upto[t]
#endif
#define NEED_IS_MET(t) HAS_TOKEN(t)
#else
#define HAS_TOKEN(t) true
#define NEED_IS_MET(t) true
#endif
#define IS_MET(t) (MAY_PASS(t) && NEED_IS_MET(t))

#define IS_HERE(t) (IN_STAY(t) && !frozen[k] && (dl[t] > 0 || LAPSES(t)))
/* May Redis be asked for the next caller? While others wait, only where that caller may follow, and
 * not for its token. */
#define MAY_ASK(t) (!want[t] || (st[t] == HOLDING && MAY_PASS(t) && HAS_TOKEN(t)))
#define MAY_BEGIN(t) (IS_FRESH(t) && IS_ENOUGH(t) && HAS_TOKEN(t) && (st[t] == KEPT -> !want[t] : MAY_PASS(t)))

/* What an unlock that asks nobody may leave behind: a hold that ends within the window, whatever
 * was asked for it, of a client that lingers and hears recalls. */
#if defined(FLAW_KNOWN_COUNTS)
#define ENDS_SOON(t) (dl[t] <= WINDOW)
#elif defined(FLAW_CLAIMED_IS_KEPT)
#define ENDS_SOON(t) true
#else
#define ENDS_SOON(t) (ASKED(t) <= WINDOW)
#endif
#define HEARS(k) SUBSCRIBED(k)
#ifdef FLAW_ALL_COME_BACK
#define LINGERS(t) true
#else
#define LINGERS(t) KEEPER(t)
#endif
#define MAY_KEEP(t) (KEEPER(t) && HEARS(k) && !want[t] && ENDS_SOON(t))
#define MAY_COME_BACK(t) (LINGERS(t) && HEARS(k) && (ENDS_SOON(t) || !KEEPER(t)) && MAY_PASS(t))

/* The tokens that an acquire reserves if it wins the lock at once. */
#ifdef RESERVES_IF_LIKELY
#define RESERVED 0
#else
#define RESERVED PASSES
#endif

/* How many of those that are asked for, if the token is not the server's time: few, so that the clock
 * does not run away from the time. Of one, none. */
#define AHEAD 0
#define RESERVES(asked) (tok > clk -> AHEAD : asked)
/* The client sees it by the same comparison. */
#ifdef FLAW_AHEAD_IS_NOT_SEEN
#define IS_AHEAD false
#else
#define IS_AHEAD (ct != cs)
#endif

/* What is to be done at once. */
#define MUST_ACT(t) (st[t] == LEAVING || (st[t] == KEPT && (want[t] || idle[t] == 0 || (dl[t] == 0 && !LAPSES(t)) || !HEARS(CLIENT(t)))) || (st[t] == HOLDING && (dl[t] == 0 || inside[t] >= BODY)))

#else
#define LEASE_OF(id) LEASE
#define IN_STAY(t) (st[t] == HOLDING)
#define TELLS(kind_) false
#define IS_READ_BY(t) (QUEUE_OF(heard[k].m[0].hold) == t)
#define IS_RECALL false
#define ALL_COME_AGAIN false
#define MAY_SERVE true
#define TAKES_OVER false
#define LAPSES(t) false
#define RESERVED PASSES
#define RENEWAL_AGE ca
#define TURN_TOKEN(t) (token[t] + passes[t])
#define IS_MET(t) true
#define taken(id) skip
#define RESERVES(asked) asked
#define tell(id, counted_) skip
#define seen(id) skip
#define confirmed(id) skip
#define sendRecall(id) skip
#define answerStay() skip
#define keptInView(kind_, hold_, res_) skip
#define cutOff() skip
#define endStay() skip
#define asks(ttl) skip
#define comes() todo[t]--
#define passTime(at) skip
#define begins() skip
#define learns(isTold) skip
#define granted_() skip
#define unmet() skip
#define recalled() skip
#define doubts() skip
#endif
