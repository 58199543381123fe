/* The hand-off protocol as built, for Spin: README.md says what is modelled and how to run it.
 *
 * Time is relative: every age and every TTL is a small number of ticks, moved by the clock together, so a run has no end
 * and no horizon. A hold is turn * 8 + n. An id that nothing refers to any more is as good as a new one, so the smallest
 * such n is taken, and the state space is finite.
 *
 * What may happen in a run (-D):
 *   TURNS=n FAIR     turns; FAIR: turns 0 and 1 belong to one client, an entry each, no passes, no yields
 *   ROUNDS=n ABORTS=n EXTENDS=n   callers of turn 0; callers that leave; extensions to LONG by turn 1
 *   FAULTS=n         faults in one run, of the kinds CAN_BREAK CAN_KEEP CAN_TIME_OUT CAN_DENY CAN_CRASH CAN_FREEZE CAN_MISS
 *                    CAN_APART CAN_STEP CAN_FORCE
 *   PLAIN            everybody is subscribed, nobody renews, only client 0 meets faults
 *   TOKENS           tokens are numbers (else only: is it the current one?)
 *   CALM             at some moment the trouble ends: from then on everybody acts at once, and all must end in BOUND ticks
 *   URGENT           everybody acts at once from the start, one fault may come: nobody waits for more than BOUND ticks
 *   FLAW_…           one rule is left out: the checks must find it
 */
#ifndef TURNS
#define TURNS 3
#endif
#ifdef FAIR
#define CLIENTS (TURNS - 1)
#define CLIENT(t) ((t) < 2 -> 0 : (t) - 1)
#else
#define CLIENTS TURNS
#define CLIENT(t) (t)
#endif
#ifndef ROUNDS
#define ROUNDS 2
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
#define WINDOW 2
#ifdef FLAW_RECHECK_LONG
#define RECHECK 3
#define PATIENCE 6
#else
#define RECHECK 1
#define PATIENCE 3
#endif
#define LEASE 3
#ifndef REPLY
#define REPLY 3
#endif
#if EXTENDS > 0
#define LONG 4
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
/* states of a turn: src/waiting/states.ts, both halves in one */
#define IDLE 0
#define ASKING 1
#define SUBSCRIBING 2
#define PARKED 3
#define RETRYING 4
#define CLAIMING 5
#define HOLDING 6
#define YIELDING 7
#define DEAD 8

#define TURN(hold) ((hold) >> 3)
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

/* A turn: what this process wants of the lock, and the hold by which Redis knows it. */
byte st[TURNS], h[TURNS];
byte todo[TURNS];              /* callers that have still to come; those behind the holder are among them */
byte lag[TURNS];               /* S - t of the last answered acquire or yield: the pair of R4 in one number */
byte sage[TURNS];              /* while that is UNKNOWN: how long ago the hold was first sent */
byte dl[TURNS];                /* local deadline: what is left of it */
byte token[TURNS], passes[TURNS];
bool nobody[TURNS];            /* its last caller has left */
bool busy[TURNS];              /* a re-check or a renewal is on its way */
#if defined(CALM) || defined(URGENT)
byte due[TURNS];               /* until its next re-check */
byte waited[TURNS];
#endif
bool calm;
bool frozen[CLIENTS];
byte faults = FAULTS, aborts = ABORTS, extends = EXTENDS, delays = DELAYS;
byte revoked;                  /* the hold that was ended by force */
byte best;                     /* the largest token that a caller was given */

#include "network.pml"
#include "server.pml"
#include "client.pml"
#include "checks.pml"

proctype Server(byte k) {
end: do
  :: d_step { to[k].ran < to[k].n -> serve(); check() }
#ifdef CAN_DENY
  :: d_step { faults > 0 && !calm && to[k].ran < to[k].n && deniable(to[k].c[to[k].ran].kind) -> faults--; deny(); check() }
#endif
  od
}

proctype Turn(byte t) {
  byte k = CLIENT(t);
end: do
  :: d_step { st[t] == IDLE && todo[t] > 0 && !calm && ROOM -> todo[t]--; start(); check() }
  :: d_step { nobody[t] && st[t] != IDLE && st[t] != DEAD && todo[t] > 0 && !calm && !frozen[k] -> todo[t]--; nobody[t] = false }
  :: d_step { MAY_READ && TURN(to[k].c[0].hold) == t -> readReply(); check() }
  :: d_step { heard[k].n > 0 && !frozen[k] && TURN(heard[k].m[0].hold) == t && (ROOM || st[t] == DEAD) -> readMessage(); check() }
  :: d_step { st[t] == PARKED && !busy[t] && IS_DUE(t) && isFirst(t) && !frozen[k] && ROOM -> lookAgain(); check() }
  :: d_step { (st[t] == RETRYING || (st[t] == SUBSCRIBING && SUBSCRIBED(k))) && !frozen[k] && ROOM -> start(); check() }
  :: d_step { st[t] == HOLDING && dl[t] == 0 && !frozen[k] && ROOM -> lost(); check() }
  :: d_step { st[t] == HOLDING && dl[t] > 0 && !frozen[k] && ROOM -> unlock(); check() }
#ifndef FAIR
  :: d_step { st[t] == HOLDING && dl[t] > 0 && !frozen[k] && todo[t] > 0 && passes[t] < PASSES && ROOM -> pass(); check() }
  :: d_step { st[t] == HOLDING && dl[t] > 0 && !frozen[k] && todo[t] > 0 && SUBSCRIBED(k) && ROOM -> yield(); check() }
#endif
#if !defined(URGENT) && !defined(PLAIN)
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
  :: d_step { !SUBSCRIBED(k) && ALIVE(k) && !frozen[k] -> subscribe(); skip }
#ifdef CAN_BREAK
  :: d_step { FAULT && to[k].n > 0 && to[k].n < 4 -> faults--; resend(); skip }
  :: d_step { FAULT && to[k].n > 0 && to[k].n < 4 -> faults--; reject(); t = 0; check() }
#endif
#ifdef CAN_KEEP
  :: d_step { FAULT && to[k].ran < to[k].n && kept.kind == 0 -> faults--; keep(); resend(); skip }
#endif
#ifdef CAN_TIME_OUT
  :: d_step { FAULT && to[k].n > 0 && to[k].n < 4 && to[k].c[0].kind < GIVEN_UP && to[k].c[0].kind != LEAVE -> faults--; timeOut(); t = 0; check() }
#endif
#ifdef CAN_CRASH
  :: d_step { FAULT -> faults--; crash(); t = 0; sub[k] = false; check() }
  :: d_step { FAULT && sub[k] -> faults--; crash(); t = 0; deaf[k] = true; check() }
#endif
#ifdef CAN_FREEZE
  :: d_step { FAULT -> faults--; frozen[k] = true }
  :: d_step { frozen[k] -> frozen[k] = false }
#endif
#ifdef CAN_APART
  :: d_step { FAULT && sub[k] -> faults--; sub[k] = false; apart[k] = true }
  :: d_step { FAULT && sub[k] -> faults--; hush(); sub[k] = false; apart[k] = true; deaf[k] = true }
#endif
#ifdef CAN_MISS
  :: d_step { FAULT && sub[k] -> faults--; hush(); sub[k] = false }
  :: d_step { FAULT && sub[k] -> faults--; hush(); deaf[k] = true }
#endif
  od
}

proctype World() {
end: do
  :: d_step { QUIET -> tick(); check() }
  :: d_step { delays > 0 && !calm && !QUIET -> delays--; tick(); check() }
#ifdef CALM
  :: d_step { !calm -> calmDown(); skip }
#endif
#ifdef CAN_KEEP
  :: d_step { kept.kind != 0 -> runKept(); check() }
#endif
#ifdef CAN_STEP
  :: d_step { faults > 0 && !calm -> faults--; stepBack(); check() }
#endif
#ifdef CAN_FORCE
  :: d_step { faults > 0 && !calm && own != 0 -> faults--; forceRelease(); check() }
#endif
  :: d_step { qn > 0 && isOver() -> dropQueue(); skip }
  od
}

init {
  atomic {
    i = 0;
    do :: i < TURNS -> todo[i] = (i == 0 -> ROUNDS : 1); i++ :: else -> break od;
    i = 0;
    do :: i < CLIENTS -> sub[i] = (WARM || i != CLIENTS - 1); i++ :: else -> break od;
    i = 0; do :: i < TURNS -> run Turn(i); i++ :: else -> break od;
    i = 0; do :: i < CLIENTS -> run Server(i); run Network(i); i++ :: else -> break od;
    i = 0;
    run World()
  }
}
