/* The hand-off protocol as built, for Spin: README.md says what is modelled and how to run it.
 *
 * Time is relative: every age and every TTL is a small number of ticks, moved by the clock
 * together, so a run has no end and no horizon. A hold is (its lock queue) * 8 + n. An id that
 * nothing refers to any more is as good as a new one, so the smallest such n is taken, and the
 * state space is finite.
 *
 * What may happen in a run (-D):
 *   QUEUES=n FAIR    lock queues, each with one entry in Redis; FAIR: 0 and 1 belong to one client,
 *                    no passes, no yields
 *   ROUNDS=n TRIES=n ABORTS=n EXTENDS=n   callers of lock queue 0; callers of the last one that
 *                    would not wait; callers that leave; extensions to LONG by lock queue 1
 *   FAULTS=n         faults in one run, of the kinds CAN_BREAK CAN_KEEP CAN_REPEAT CAN_TIME_OUT
 *                    CAN_DENY CAN_FULL CAN_CRASH CAN_CRASH_WAITING CAN_FREEZE CAN_MISS
 *                    CAN_RECONNECT CAN_HANG (CAN_HANG_AT_FIRST) CAN_APART CAN_STEP CAN_FORCE
 *   PLAIN            everybody is subscribed, nobody renews, only client 0 meets faults
 *   UNHEARD          SUBSCRIBE may take so long that a client queues before it is acknowledged
 *   FAR              places behind the first one stand far behind: they look seldom
 *   TOKENS           tokens are numbers (else only: is it the current one?)
 *   CALM             at some moment the trouble ends: from then on everybody acts at once, and all
 *                    must end in BOUND ticks
 *   URGENT           everybody acts at once from the start, one fault may come: nobody waits for
 *                    more than BOUND ticks
 *   LONG_HOLDS       the same, but holders hold for as long as they like, and the bound is not
 *                    checked
 *   GRANT_KEPT       no grant runs out unread
 *   PLACE_KEPT       no waiter loses its place
 *   SILENCE          no client is granted the lock that Redis has not heard of for the TTL of an
 *                    entry
 *   FLAW_…           one rule is left out: the checks must find it */
#ifndef QUEUES
#define QUEUES 3
#endif
#ifdef FAIR
#define CLIENTS (QUEUES - 1)
#define CLIENT(t) ((t) < 2 -> 0 : (t) - 1)
#else
#define CLIENTS QUEUES
#define CLIENT(t) (t)
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef TRIES
#define TRIES 0
#endif
#ifndef ABORTS
#define ABORTS 0
#endif
#ifndef EXTENDS
#define EXTENDS 0
#endif
#ifndef FAULTS
#define FAULTS 0
#endif
#ifndef DELAYS
#define DELAYS 0
#endif
#ifdef PLAIN
#define WARM true
#else
#define WARM false
#endif
#ifndef BOUND
#define BOUND 9
#endif

/* Ticks of about a re-check period; the proportions are those of src/defaults.ts, the lease is shorter. */
#ifndef WINDOW
#define WINDOW 2
#endif
#ifdef FLAW_RECHECK_LONG
#define RECHECK 3
#define ENTRY_TTL 6
#else
#define RECHECK 1
#define ENTRY_TTL 3
#endif
#ifdef FLAW_KEPT_FOR_LONG
#define KEPT_FOR 8
#else
#define KEPT_FOR ENTRY_TTL  /* by a re-check */
#endif
/* Of a place far behind: the period of its re-checks, when the first one comes, and for how long
 * each keeps it. */
#define FAR_PERIOD 4
#ifdef FLAW_FIRST_LOOK_LATE
#define FIRST_LOOK FAR_PERIOD
#else
#define FIRST_LOOK 2
#endif
#define FAR_TTL 5
#if defined(URGENT) || defined(LONG_HOLDS)
#define PROMPT 1
#endif
#if defined(CALM) || defined(PROMPT)
#define TIMED 1
#endif
#ifndef LEASE
#define LEASE 3
#endif
#define REPLY 3
#if EXTENDS > 0
#define LONG (LEASE + 1)
#else
#define LONG LEASE
#endif
#ifdef CAN_STEP
#define BACK 1       /* a step back of the server's clock */
#else
#define BACK 0
#endif
#define PASSES 1
#define AGE_MAX (LONG + BACK + 1)
#define LAG_MAX (WINDOW + BACK + 1)
#define UNKNOWN 15

#define QMAX 6
#define MMAX 4
#ifndef K
#define K 5          /* commands on their way in one connection */
#endif

/* commands */
#define TRY 1
#define QUEUE 2
#define AGAIN 3
#define RELEASE 4
#define YIELD 5
#define LEAVE 6
#define RENEW 7
#define CLAIM 8
#define EXTEND 9
#define GIVEN_UP 16
/* answers */
#define OWNER 1
#define MINE 2
#define HELD 3
#define GONE 4
#define STALE 5
#define RELEASED 6
#define TAKEN 7
#define LEFT 8
#define RENEWED 9
#define ERROR 10
/* states of a local lock: src/core/states.ts */
#define IDLE 0
#define ASKING 1
#define SUBSCRIBING 2
#define PARKED 3
#define RETRYING 4
#define CLAIMING 5
#define HOLDING 6
#define YIELDING 7
#define DEAD 8

#define QUEUE_OF(hold) ((hold) >> 3)
#define CURRENT 1
#define OLD 2
#ifdef TOKENS
#define TOKEN tok
#else
#define TOKEN CURRENT
#endif
#ifdef FLAW_NO_NOT_AFTER
#define STALE_AT(age_) false
#else
#define STALE_AT(age_) (age_ > REPLY)
#endif

/* A lock queue: what this process wants of the lock, and the hold by which Redis knows it. */
byte st[QUEUES], h[QUEUES];
byte todo[QUEUES];              /* callers that have still to come; those behind the holder are among them */
byte lag[QUEUES];               /* S - t of the last answered acquire or yield: the pair of R4 in one number */
byte sage[QUEUES];              /* while that is UNKNOWN: how long ago the hold was first sent */
byte dl[QUEUES];                /* local deadline: what is left of it */
byte token[QUEUES], passes[QUEUES];
bool nobody[QUEUES];            /* its last caller has left */
bool busy[QUEUES];              /* a re-check or a renewal is on its way */
#ifdef TIMED
byte due[QUEUES];               /* until its next re-check */
byte waited[QUEUES];
bool acked[QUEUES];             /* SUBSCRIBE was acknowledged since it has asked */
#endif
#ifdef FAR
bool far[QUEUES];               /* stands far behind, by the last answer */
#define IS_FAR(t) far[t]
#else
#define IS_FAR(t) false
#endif
#if TRIES > 0
byte hasty[QUEUES];             /* a caller that would not wait: BEFORE, it came before the last acquire was sent, or SINCE */
bool wasHeld[QUEUES];           /* for the check: was the lock held at some moment since that caller came? */
#define BEFORE 1
#define SINCE 2
#define HASTY(t) (hasty[t] != 0)
byte tries = TRIES;
#else
#define HASTY(t) false
#endif
#ifdef CAN_HANG
bool hung[CLIENTS];             /* SUBSCRIBE hangs */
byte settling[CLIENTS];         /* ticks until its places have told that it is not heard */
#define HUNG(k) hung[k]
#else
#define HUNG(k) false
#endif
bool calm;
bool frozen[CLIENTS];
#ifdef SILENCE
byte silent[CLIENTS];          /* ticks since Redis ran a command of this client, up to ENTRY_TTL */
#endif
byte faults = FAULTS, aborts = ABORTS, extends = EXTENDS, delays = DELAYS;
byte revoked;                  /* the hold that was ended by force */
byte best;                     /* the largest token that a caller was given */

#include "stay.pml"
#include "server.pml"
#include "network.pml"
#include "client.pml"
#include "checks.pml"
#include "stay-client.pml"

proctype Server(byte k) {
end: do
  :: d_step { to[k].ran < to[k].n && MAY_SERVE -> serve(); tidy(); check() }
#ifdef CAN_DENY
  :: d_step { faults > 0 && !calm && to[k].ran < to[k].n && deniable(to[k].c[to[k].ran].kind) -> faults--; deny(); check() }
#endif
  od
}

proctype LockQueue(byte t) {
  byte k = CLIENT(t);
end: do
  :: d_step { st[t] == IDLE && todo[t] > 0 && !calm && ROOM -> comes(); start(); check() }
  :: d_step { nobody[t] && st[t] != IDLE && st[t] != DEAD && todo[t] > 0 && !calm && !frozen[k] -> todo[t]--; nobody[t] = false }
  :: d_step { MAY_READ && QUEUE_OF(to[k].c[0].hold) == t -> readReply(); check() }
  :: d_step { heard[k].n > 0 && !frozen[k] && IS_READ_BY(t) && (ROOM || st[t] == DEAD) -> readMessage(); check() }
  :: d_step { AGAIN_STATE(t) && !busy[t] && IS_DUE(t) && isFirst(t) && !frozen[k] && ROOM -> lookAgain(); check() }
#if TRIES > 0
  :: d_step { t == QUEUES - 1 && tries > 0 && !calm && ROOM && hasty[t] != SINCE && (st[t] == IDLE || st[t] == ASKING || st[t] == SUBSCRIBING || st[t] == RETRYING) -> tries--; hurry(); check() }
#endif
  :: d_step { (st[t] == RETRYING || (st[t] == SUBSCRIBING && MAY_QUEUE(k))) && !frozen[k] && ROOM -> start(); check() }
  :: d_step { IN_STAY(t) && dl[t] == 0 && !LAPSES(t) && !frozen[k] && ROOM -> lost(); check() }
  :: d_step { st[t] == HOLDING && dl[t] > 0 && !frozen[k] && ROOM -> unlock(); check() }
#if !defined(FAIR) && !defined(STAYS)
  :: d_step { st[t] == HOLDING && dl[t] > 0 && !frozen[k] && todo[t] > 0 && passes[t] < PASSES && ROOM -> pass(); check() }
  :: d_step { st[t] == HOLDING && dl[t] > 0 && !frozen[k] && todo[t] > 0 && SUBSCRIBED(k) && ROOM -> yield(); check() }
#endif
#if !defined(URGENT) && !defined(PLAIN) && !defined(STAYS)
  :: d_step { st[t] == HOLDING && dl[t] > 0 && !EXPLICIT(t) && !busy[t] && !calm && ROOM -> busy[t] = true; send(RENEW, h[t], 0); check() }
#endif
#if EXTENDS > 0
  :: d_step { t == 1 && extends > 0 && st[t] == HOLDING && dl[t] > 0 && ROOM -> extends--; send(EXTEND, h[t], 0); check() }
#endif
#if ABORTS > 0
  :: d_step { aborts > 0 && !calm && WAITS(t) && !nobody[t] && !frozen[k] && ROOM -> aborts--; abandon(); check() }
#endif
  od
}

proctype Network(byte k) {
  byte t;
end: do
  :: d_step { !SUBSCRIBED(k) && ALIVE(k) && !frozen[k] && !HUNG(k) -> subscribe(); skip }
#ifdef CAN_BREAK
  :: d_step { FAULT && to[k].n > 0 && to[k].n < 4 -> faults--; resend(); skip }
  :: d_step { FAULT && to[k].n > 0 && to[k].n < 4 -> faults--; reject(); t = 0; check() }
#endif
#ifdef CAN_KEEP
  :: d_step { FAULT && to[k].ran < to[k].n && kept.kind == 0 -> faults--; keep(); resend(); skip }
#endif
#ifdef CAN_REPEAT
  :: d_step { FAULT && to[k].n > 0 && late.kind == 0 -> faults--; putOff(); skip }
  :: d_step { late.kind != 0 && CLIENT(QUEUE_OF(late.hold)) == k && !frozen[k] && to[k].n < K -> sendAgain(); skip }
#endif
#ifdef CAN_TIME_OUT
  :: d_step { FAULT && to[k].n > 0 && to[k].n < 4 && to[k].c[0].kind < GIVEN_UP && to[k].c[0].kind != LEAVE -> faults--; timeOut(); t = 0; check() }
#endif
#ifdef CAN_CRASH
  :: d_step { FAULT -> faults--; crash(); t = 0; sub[k] = false; check() }
  :: d_step { FAULT && sub[k] -> faults--; crash(); t = 0; deaf[k] = true; check() }
#endif
#ifdef CAN_CRASH_WAITING
  :: d_step { FAULT && AT_REST(k) -> faults--; crash(); t = 0; sub[k] = false; check() }
#endif
#ifdef CAN_HANG
#ifdef CAN_HANG_AT_FIRST
#define MAY_HANG (!hung[k] && !sub[k])
#else
#define MAY_HANG (!hung[k])
#endif
  :: d_step { FAULT && MAY_HANG -> faults--; if :: sub[k] -> hush(); settling[k] = 2 :: else fi; sub[k] = false; hung[k] = true }
  :: d_step { hung[k] -> hung[k] = false }
#endif
#ifdef CAN_FREEZE
  :: d_step { FAULT -> faults--; frozen[k] = true }
  :: d_step { frozen[k] -> frozen[k] = false }
#endif
#ifdef CAN_APART
  :: d_step { FAULT && sub[k] -> faults--; sub[k] = false; apart[k] = true }
  :: d_step { FAULT && sub[k] -> faults--; hush(); sub[k] = false; apart[k] = true; deaf[k] = true }
#endif
#if defined(CAN_MISS) || defined(CAN_RECONNECT)
  :: d_step { FAULT && sub[k] -> faults--; hush(); sub[k] = false }
#endif
#ifdef CAN_MISS
  :: d_step { FAULT && sub[k] -> faults--; hush(); deaf[k] = true }
#endif
  od
}

proctype World() {
end: do
  :: d_step { QUIET -> tick(); tidy(); check() }
  :: d_step { delays > 0 && !calm && !QUIET -> delays--; tick(); tidy(); check() }
#ifdef CALM
  :: d_step { !calm -> calmDown(); skip }
#endif
#ifdef CAN_KEEP
  :: d_step { kept.kind != 0 -> runKept(); tidy(); check() }
#endif
#ifdef CAN_LOSE
  :: d_step { faults > 0 && own != 0 -> faults--; lose(); check() }
#endif
#ifdef CAN_FULL
  :: d_step { faults > 0 && !calm && !noMemory -> faults--; noMemory = true }
  :: d_step { noMemory -> noMemory = false }
#endif
#ifdef CAN_STEP
  :: d_step { faults > 0 && !calm -> faults--; stepBack(); check() }
#endif
#ifdef CAN_FORCE
  :: d_step { faults > 0 && !calm && own != 0 -> faults--; forceRelease(); tidy(); check() }
#endif
  :: d_step { qn > 0 && isOver() -> dropQueue(); tidy() }
  od
}

init {
  atomic {
    i = 0;
    do :: i < QUEUES -> todo[i] = (i == 0 || ALL_COME_AGAIN -> ROUNDS : 1); i++ :: else -> break od;
    i = 0;
    do :: i < CLIENTS -> sub[i] = (WARM || i != CLIENTS - 1); i++ :: else -> break od;
    i = 0; do :: i < QUEUES -> run LockQueue(i); i++ :: else -> break od;
    i = 0; do :: i < CLIENTS -> run Server(i); run Network(i); i++ :: else -> break od;
#ifdef STAYS
    i = 0; do :: i < QUEUES -> run Stay(i); i++ :: else -> break od;
#endif
    i = 0;
    run World()
  }
}
