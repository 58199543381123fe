/* Counted resources (read-write locks, semaphores), for Spin: README.md says what is modelled and
 * how to run it.
 *
 * A resource has PERMITS units. A writer wants all, a reader one, a caller of a semaphore some. One
 * hash in Redis has a field for each hold, and the books: how many units are used, of how many. One
 * queue, in which nobody overtakes.
 *
 * Time is relative, in ticks, as in handoff.pml. Client k has the holds 4k + 1 to 4k + 4 and two
 * slots, 2k and 2k + 1: a slot is a hold that it looks for or has. It needs both when its readers
 * still share one hold while later ones queue.
 *
 *   CLIENTS=n PERMITS=n   clients; units
 *   W0= … W2=, U0= … U2=  what a client's callers want together: at least W, at most U. With
 *                         READ_WRITE: PERMITS is a writer, 1 are readers, which share one hold.
 *                         Without it: U callers with one unit each, or W units at once
 *   READ_WRITE TOKENS     tokens are numbers; readers of one phase share one
 *   CALLERS=n C0= … C2=   callers of each client; of client 0 … 2
 *   N0= … N2=             the number of permits that a client's code says
 *   LONG=n                the first caller of client 1 has a lease of so many ticks
 *   DELAYS=n              ticks that pass while something is unread or not executed
 *   ABORTS=n DOWNS=n      callers that leave while they wait; writers that become readers
 *   FAULTS=n              faults in one run, of the kinds CAN_CRASH CAN_FREEZE CAN_MISS CAN_KEEP
 *                         CAN_TIME_OUT CAN_FULL CAN_DRIFT CAN_TYPE CAN_VANISH
 *   COPIES=n              late copies that the network has at a time: 1 or 2
 *   SETS=n                setPermits(n), once
 *   URGENT BOUND=n        everybody acts at once: nobody waits for more than BOUND ticks
 *   RENEWS PLAIN          renewals; only client 0 meets faults
 *   KEY_ENDS              the hash has a TTL, which is above all ends (else it is taken as given)
 *   YIELDS=n              times that a writer ends its hold and queues for its next caller in one
 *                         command
 *   PASSED=n              times that permits of a hold go from a caller to the next one of its
 *                         process
 *   SITS=k SCAN=n         client k never leaves; ticks after which the next script scans in any
 *                         case
 *   LINGERS DEAF=k        a hold that readers share may stay with its process, with nobody inside;
 *                         client k hears no recall
 *   TRIES=k               writers of client k do not wait: they have a place until they have their
 *                         answer, and say so in their recall
 *   FLAW_…                one rule is left out: the checks must find it */
#ifndef CLIENTS
#define CLIENTS 3
#endif
#ifndef PERMITS
#define PERMITS 3
#endif
#ifndef COPIES
#define COPIES 1
#endif
#ifndef W0
#define W0 PERMITS
#endif
#ifndef W1
#define W1 1
#endif
#ifndef W2
#define W2 1
#endif
#ifndef U0
#define U0 W0
#endif
#ifndef U1
#define U1 W1
#endif
#ifndef U2
#define U2 W2
#endif
#ifndef CALLERS
#define CALLERS 1
#endif
#ifndef C0
#define C0 CALLERS
#endif
#ifndef C1
#define C1 CALLERS
#endif
#ifndef C2
#define C2 CALLERS
#endif
#ifndef N0
#define N0 PERMITS
#endif
#ifndef N1
#define N1 PERMITS
#endif
#ifndef N2
#define N2 PERMITS
#endif
#ifndef DELAYS
#define DELAYS 0
#endif
#ifndef ABORTS
#define ABORTS 0
#endif
#ifndef DOWNS
#define DOWNS 0
#endif
#ifndef YIELDS
#define YIELDS 0
#endif
#ifndef PASSED
#define PASSED 0
#endif
#ifndef FAULTS
#define FAULTS 0
#endif
#ifndef BOUND
#define BOUND 9
#endif
#ifndef DEAF
#define DEAF 99
#endif
#ifndef SITS
#define SITS 99
#endif
#ifndef TRIES
#define TRIES 99
#endif

/* Ticks of about a re-check period. SHARE, for which readers come in without asking, is far
 * shorter: as short as ticks allow. */
#define WINDOW 2
#define RECHECK 1
#define ENTRY_TTL 3
#define LEASE 3
#define REPLY 3
#define SHARE 1
#ifndef SCAN
#define SCAN 2       /* a script scans when the last scan is so long ago */
#endif
#define PASSES 1
#ifdef LONG
#define LEASE_OF(k, first) ((k) == 1 && (first) -> LONG : LEASE)
#define AGE_MAX (LONG + 1)
#else
#define LEASE_OF(k, first) LEASE
#define AGE_MAX (LEASE + 1)
#endif
#define TOO_LONG (LEASE + 1)   /* 1.5 x the lease, and more than the window: longer than that no caller may block others by a crash */
/* What may stay with its process is asked for the window only. */
#ifdef LINGERS
#define LEASE_FOR(k, first) (SHARES(k) -> WINDOW : LEASE_OF(k, first))
#else
#define LEASE_FOR(k, first) LEASE_OF(k, first)
#endif
#define UNKNOWN 15
#define NEVER 15

#define QMAX 6
#define K 5          /* commands on their way in one connection */
#define SLOTS (2 * CLIENTS)
#define HOLDS (4 * CLIENTS + 1)
#define CLIENT(hold) (((hold) - 1) / 4)
#define WANT(k) ((k) == 0 -> W0 : ((k) == 1 -> W1 : W2))
#define UP_TO(k) ((k) == 0 -> U0 : ((k) == 1 -> U1 : U2))
#define NUMBER(k) ((k) == 0 -> N0 : ((k) == 1 -> N1 : N2))
#ifdef READ_WRITE
#define IS_WRITER(k) (WANT(k) == PERMITS)
#define SHARES(k) (WANT(k) < PERMITS)
#else
#define IS_WRITER(k) false
#define SHARES(k) false
#endif
/* Units that one caller uses, and how many callers a hold of so many units serves. */
#define EACH(k) (SHARES(k) || UP_TO(k) != WANT(k) -> 1 : WANT(k))
#define SERVES(k, units) (SHARES(k) -> 9 : (units) / EACH(k))

/* commands */
#define QUEUE 1
#define AGAIN 2
#define JOIN 3       /* a re-check of the hold that readers share: may more of them come in? */
#define RENEW 4
#define YIELD 5      /* ends the hold `arg`, and queues a new one behind those that wait */
#define RELEASE 6
#define LEAVE 7
#define GIVEN_UP 8
#define IS_ENDED_BY(command, id) ((command.kind & 7) == YIELD && command.arg == (id))
/* answers */
#define OWNER 1
#define MINE 2
#define HELD 3
#define GONE 4
#define STALE 5
#define DIFFER 6
#define RENEWED 7
#define DONE 8
#define ERROR 9
/* states of a slot */
#define FREE 0
#define ASKING 1
#define PARKED 2
#define HAVE 3

/* A process. */
byte todo[CLIENTS], waiting[CLIENTS];   /* callers that have still to come, and that wait */
bool dead[CLIENTS], frozen[CLIENTS];
bool counted[CLIENTS];                  /* does Redis count it as subscribed? A crash may leave it so */
byte waited[CLIENTS];
byte st[SLOTS], h[SLOTS];
byte inside[SLOTS];                     /* callers that have the hold's lease */
byte has[SLOTS];                        /* units that it believes to have */
byte lag[SLOTS], sage[SLOTS];           /* S - t of the last answer; while that is UNKNOWN, how long ago it was first asked for */
byte dl[SLOTS];                         /* local deadline: what is left of it */
byte open[SLOTS];                       /* for so long readers come in without asking */
bool closed[SLOTS];                     /* somebody waits: no more readers come in */
bool joining[SLOTS], busy[SLOTS];
bool isFirst[SLOTS];                    /* the lease asked for is that of the client's first caller */
byte due[SLOTS];
byte passes[SLOTS];
bool isDown[SLOTS];                     /* a writer that has become a reader */
bool isLost[SLOTS];                     /* for the check: its deadline has passed */
#ifdef TOKENS
byte token[SLOTS];
byte best, bestWriter, downToken;       /* for the checks: the largest tokens that a caller, and a writer, was given; of the last
                                           writer that became a reader */
#endif
#ifdef LINGERS
bool idle[SLOTS], mayStay[SLOTS];       /* nobody is inside, and it stays; Redis tells its client of those that wait */
#if TRIES < CLIENTS
bool tried[SLOTS];                      /* a writer that does not wait was told that somebody is inside */
#endif
#endif
#ifdef LONG
byte asked[SLOTS];                      /* until the furthest end that was ever asked for the hold */
#endif
byte faults = FAULTS, aborts = ABORTS, delays = DELAYS, downs = DOWNS, yields = YIELDS;
#ifdef SETS
bool isSetYet;
#endif

#include "counted-permits.pml"
#include "counted-server.pml"
#include "counted-network.pml"
#include "counted-client.pml"
#include "counted-checks.pml"

#define ROOM (to[k].n < K - 1)
#define AWAKE (!dead[k] && !frozen[k])

proctype Server(byte k) {
end: do
  :: d_step { to[k].ran < to[k].n -> serve(); check() }
  od
}

proctype Client(byte k) {
  byte t;
end: do
  :: d_step { todo[k] > 0 && AWAKE -> todo[k]--; arrive(); check() }
  :: d_step { AWAKE && ROOM && SEEKS(k) -> seek(); check() }
  :: d_step { AWAKE && to[k].ran > 0 && ROOM -> readReply(); check() }
#if TRIES < CLIENTS
  :: d_step { AWAKE && ROOM && IS_TRYING(k) -> abandon(); check() }
#endif
#if ABORTS > 0
  :: d_step { aborts > 0 && AWAKE && waiting[k] > 0 && ROOM -> aborts--; abandon(); check() }
#endif
  od
}

#define INBOX(m) d_step { AWAKE && age[m] > 0 && ROOM -> readMessage(m); check() }
#define RECALL(m) d_step { AWAKE && recalls[m] && ROOM -> readRecall(m); check() }
proctype Inbox(byte k) {
  byte t;
end: do
  :: INBOX(4*k+1)
  :: INBOX(4*k+2)
  :: INBOX(4*k+3)
  :: INBOX(4*k+4)
#ifdef LINGERS
  :: RECALL(4*k+1)
  :: RECALL(4*k+2)
  :: RECALL(4*k+3)
  :: RECALL(4*k+4)
#endif
  od
}

proctype Slot(byte t) {
  byte k = t / 2;
end: do
  :: d_step { st[t] == PARKED && !busy[t] && AWAKE && ROOM && IS_DUE(t) -> busy[t] = true; send(AGAIN, h[t], 0); check() }
  :: d_step { st[t] == HAVE && dl[t] == 0 && AWAKE && ROOM -> lost(); check() }
  :: d_step { st[t] == HAVE && inside[t] > 0 && dl[t] > 0 && AWAKE && ROOM && k != SITS -> unlock(); check() }
#if defined(READ_WRITE) && defined(TOKENS)
  :: d_step { st[t] == HAVE && IS_WRITER(k) && !isDown[t] && inside[t] > 0 && dl[t] > 0 && waiting[k] > 0 && passes[t] < PASSES && AWAKE -> pass(); check() }
#endif
#if PASSED > 0
  :: d_step { HAS_ROOM(t) && IS_IN_TIME(t) && IS_YOUNG(t) && waiting[k] > 0 && IS_COUNTED(t) && AWAKE -> passPermits(); check() }
  :: d_step { IS_FREE(t) && AWAKE && ROOM -> giveBack(); check() }
#endif
#if YIELDS > 0
  :: d_step { yields > 0 && st[t] == HAVE && IS_WRITER(k) && !isDown[t] && inside[t] == 1 && dl[t] > 0 && waiting[k] > 0 && AWAKE && ROOM -> yields--; yield_(); check() }
#endif
#if DOWNS > 0
  :: d_step { downs > 0 && st[t] == HAVE && IS_WRITER(k) && !isDown[t] && inside[t] > 0 && dl[t] > 0 && AWAKE && ROOM -> downs--; downgrade(); check() }
#endif
#if defined(LINGERS) && !defined(URGENT)
  :: d_step { idle[t] && dl[t] > 0 && AWAKE && ROOM -> finish(RELEASE); check() }
#endif
#ifdef FLAW_KEPT_IS_RENEWED
  :: d_step { idle[t] && dl[t] > 0 && dl[t] < LEASE && !busy[t] && AWAKE && ROOM -> busy[t] = true; send(RENEW, h[t], 0); check() }
#endif
#ifdef RENEWS
  :: d_step { st[t] == HAVE && inside[t] > 0 && dl[t] > 0 && dl[t] < LEASE && !busy[t] && AWAKE && ROOM -> busy[t] = true; send(RENEW, h[t], 0); check() }
#endif
  od
}

#ifdef PLAIN
#define MAY_FAIL (k == 0)
#else
#define MAY_FAIL true
#endif
#define FAULT (faults > 0 && MAY_FAIL)
proctype Network(byte k) {
  byte t;
end: do
#ifdef CAN_CRASH
  :: d_step { FAULT && !dead[k] -> faults--; counted[k] = false; crash(); check() }
  :: d_step { FAULT && !dead[k] -> faults--; crash(); check() }
#endif
#ifdef CAN_FREEZE
  :: d_step { FAULT && AWAKE -> faults--; frozen[k] = true }
  :: d_step { frozen[k] -> frozen[k] = false }
#endif
#ifdef CAN_MISS
  :: d_step { FAULT && (age[4*k+1] > 0 || age[4*k+2] > 0 || age[4*k+3] > 0 || age[4*k+4] > 0 || ANY_RECALL(k)) -> faults--; hush(); check() }
#endif
#ifdef CAN_KEEP
  :: d_step { FAULT && kept[0].kind == 0 && to[k].ran < to[k].n -> faults--; keep(0); skip }
#if COPIES > 1
  :: d_step { FAULT && kept[0].kind != 0 && kept[1].kind == 0 && to[k].ran < to[k].n -> faults--; keep(1); skip }
#endif
#endif
#ifdef CAN_TIME_OUT
  :: d_step { FAULT && AWAKE && to[k].n > 0 && ROOM && to[k].c[0].kind < GIVEN_UP -> faults--; timeOut(); check() }
#endif
  :: false -> skip
  od
}

proctype World() {
end: do
  :: d_step { QUIET -> tick(); check() }
  :: d_step { !QUIET && delays > 0 -> delays--; tick(); check() }
#ifdef CAN_KEEP
  :: d_step { kept[0].kind != 0 -> runKept(0); check() }
#if COPIES > 1
  :: d_step { kept[1].kind != 0 -> runKept(1); check() }
#endif
#endif
#ifdef CAN_FULL
  :: d_step { faults > 0 && !noMemory -> faults--; noMemory = true }
  :: d_step { noMemory -> noMemory = false }
#endif
#ifdef CAN_DRIFT
  :: d_step { faults > 0 && used > 0 && used < PERMITS -> faults--; used++ }
#endif
#ifdef CAN_TYPE
  :: d_step { faults > 0 && qn == 0 && !noQueue -> faults--; noQueue = true }
  :: d_step { noQueue -> noQueue = false }
#endif
#ifdef CAN_VANISH
  :: d_step { faults > 0 && permits > 0 && NOBODY_INSIDE -> faults--; vanish(); check() }
#endif
#ifdef SETS
  :: d_step { !isSetYet -> isSetYet = true; setPermits(); check() }
#endif
#ifdef KEY_ENDS
  :: d_step { permits > 0 && keyTtl == 0 -> vanish(); check() }
#endif
  od
}

init {
  atomic {
    todo[0] = C0; counted[0] = true;
    todo[1] = C1; counted[1] = true;
#if CLIENTS > 2
    todo[2] = C2; counted[2] = true;
#endif
    i = 0; do :: i < CLIENTS -> run Server(i); run Client(i); run Inbox(i); run Network(i); run Slot(2 * i); if :: SHARES(i) || UP_TO(i) != WANT(i) -> run Slot(2 * i + 1) :: else fi; i++ :: else -> break od;
    i = 0;
    run World()
  }
}
