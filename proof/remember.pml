/* A result that is shared, for Spin: one caller of all runs the body, the others get its value.
 * README.md says what is modelled and how to run it.
 *
 * Time is relative, in ticks. A hold is 8 * (its client) + n; an id that nothing refers to is as
 * good as a new one. Tokens are ranks: after every step those that something still refers to become
 * 1, 2, 3 and so on. So the state space is finite.
 *
 *   CLIENTS=n        processes, each with one place in the queue
 *   ROUNDS=n         calls of client 0; the others have one each
 *   JOINS=n          callers that come to a process that has a caller already
 *   LEAVES=n         callers that leave before they have an answer
 *   THROWS=n FORGETS=n   bodies that throw; calls of forget
 *   KEEP0=n KEEP=n   how long the result of client 0, and of the others, is for new callers
 *   CHUNK=n          waiters that are told of a result at once; the next one is granted the lock
 *   FAULTS=n         faults in one run, of the kinds CAN_BREAK CAN_KEEP CAN_MISS CAN_CRASH
 *                    CAN_FREEZE CAN_FORCE
 *   COPIES=n         late copies of commands at a time
 *   DELAYS=n         ticks while something is on its way or unread
 *   URGENT           everybody acts at once, and nobody waits for more than BOUND ticks
 *   FLAW_…           one rule is left out: the checks must find it */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef JOINS
#define JOINS 0
#endif
#ifndef LEAVES
#define LEAVES 0
#endif
#ifndef THROWS
#define THROWS 0
#endif
#ifndef FORGETS
#define FORGETS 0
#endif
#ifndef FAULTS
#define FAULTS 0
#endif
#ifndef COPIES
#define COPIES 1
#endif
#ifndef KEEP0
#define KEEP0 0
#endif
#ifndef KEEP
#define KEEP 1
#endif
#ifndef CHUNK
#define CHUNK 1
#endif
#ifndef DELAYS
#define DELAYS 2
#endif
#ifndef BOUND
#define BOUND 9
#endif

/* Ticks of about a re-check period. Only their order counts. */
#ifndef LEASE
#define LEASE 2
#endif
#define WINDOW 1
#ifndef REPLY
#define REPLY 1      /* how long after its sending a command that may take the lock is executed */
#endif
#define FLOOR 2      /* the shortest TTL of a result */
#define LIMIT 3      /* how long after the last proof of ownership a late result counts */
#ifdef FLAW_LAST_ENDS_EARLY
#define LAST 2
#else
#define LAST LIMIT   /* how long the token of the last result is kept */
#endif
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define KEEP_OF(p) ((p) == 0 -> KEEP0 : KEEP)

/* commands */
#define TRY 1
#define QUEUE 2      /* a take that queues; also of a hold that was granted */
#define AGAIN 3
#define RENEW 4
#define FINISH 5
#define RELEASE 6
/* answers */
#define OWNER 1      /* or "mine" */
#define HELD 2
#define KEPT 3
#define GONE 4
#define STALE 5
#define STORED 6
#define TAKEN 7
#define DONE 8
/* states of a place */
#define IDLE 0
#define ASKING 1
#define PARKED 2
#define RUNNING 3
#define FINISHING 4
#define RELEASING 5
#define DEAD 6
/* the second caller of a process: it came before, or after, the command under way was sent */
#define NOBODY 0
#define AFTER 1
#define BEFORE 2

#define CLIENT(hold) ((hold) >> 3)
#define QMAX 5

typedef Command {
  byte kind, hold, seen, tok, lim, keep;   /* lim: what is left of the limit of a late result */
  byte age;                          /* since it was sent */
  bool ran;
  byte res, rtok, since;             /* the answer, its token, ticks since it was executed */
  bool fresh                         /* answered KEPT: new callers get it too */
}

/* Redis */
byte own, oTok, oExp;
byte q[QMAX], qn;
byte rTok, rKeep, rTtl;              /* the result: its token, how long for new callers, its TTL */
bool behind;                         /* the result was stored behind the grant of the present owner */
byte lTok, lTtl;                     /* of the last run whose result was stored */
byte top;                            /* the last token */
/* Clients */
byte st[CLIENTS], h[CLIENTS], todo[CLIENTS];
byte seen[CLIENTS];                  /* the run that the caller has waited for */
byte known[CLIENTS];                 /* the last run that its place knows of, for callers that have seen none */
byte named[CLIENTS];                 /* the first run that a command of its hold has named */
byte run_[CLIENTS], dl[CLIENTS], lim[CLIENTS];   /* of a run: token, local deadline, limit of a late result */
byte jn[CLIENTS], jSeen[CLIENTS];
bool isLater[CLIENTS];               /* the caller came after the command under way was sent */
byte came[CLIENTS], jCame[CLIENTS];  /* the last result that was stored before it came */
byte granted[CLIENTS], ready[CLIENTS];           /* messages that are not read yet: the hold that they name */
Command c[CLIENTS];                  /* the command under way */
Command kept[COPIES];                /* copies that the network still has */
bool frozen[CLIENTS];
#ifdef URGENT
bool due[CLIENTS];
byte waited[CLIENTS];
#endif
byte joins = JOINS, leaves = LEAVES, throws = THROWS, forgets = FORGETS, faults = FAULTS, delays = DELAYS;
byte revoked;                        /* the hold that was ended by force */
/* For the checks */
byte best;                           /* the largest token whose result was stored */
byte owed;                           /* ticks for which waiters must find it */
byte dead;                           /* results up to this token are for no new caller */
byte bar[CLIENTS], jBar[CLIENTS];    /* the same when this caller came */

#include "remember-server.pml"
#include "remember-client.pml"
#include "remember-checks.pml"

proctype Process(byte p) {
end: do
  :: d_step { st[p] == IDLE && todo[p] > 0 && !frozen[p] -> todo[p]--; call_(); after() }
  :: d_step { c[p].kind != 0 && !c[p].ran -> serve(c[p]); after() }
  :: d_step { c[p].ran && ALIVE(p) && !frozen[p] -> read(); after() }
  :: d_step { granted[p] != 0 && ALIVE(p) && !frozen[p] && (granted[p] != h[p] || MAY_ASK(p)) ->
        readGrant(); after() }
  :: d_step { ready[p] != 0 && ALIVE(p) && !frozen[p] && (ready[p] != h[p] || MAY_ASK(p)) ->
        readReady(); after() }
#ifndef FLAW_READY_ONLY
  :: d_step { MAY_ASK(p) && !frozen[p] && IS_DUE(p) -> lookAgain(); after() }
#endif
  :: d_step { st[p] == RUNNING && dl[p] > 0 && dl[p] < LEASE && c[p].kind == 0 && !frozen[p] ->
        send(RENEW); after() }
  :: d_step { st[p] == RUNNING && c[p].kind == 0 && !frozen[p] -> ends(); after() }
#if THROWS > 0
  :: d_step { throws > 0 && st[p] == RUNNING && c[p].kind == 0 && !frozen[p] -> throws--; throw_(); after() }
#endif
#if JOINS > 0
  :: d_step { joins > 0 && st[p] != IDLE && ALIVE(p) && jn[p] == NOBODY && !frozen[p] ->
        joins--; join(); after() }
#endif
#if LEAVES > 0
  :: d_step { leaves > 0 && WAITS(p) && !frozen[p] -> leaves--; left(); after() }
#endif
#ifdef CAN_BREAK
  /* The connection breaks behind the execution: sent again. */
  :: d_step { faults > 0 && c[p].ran && ALIVE(p) -> faults--; again(); after() }
#endif
#ifdef CAN_KEEP
  :: d_step { faults > 0 && COPYABLE(c[p]) && kept[0].kind == 0 -> faults--; copy(c[p], kept[0]); after() }
#if COPIES > 1
  :: d_step { faults > 0 && COPYABLE(c[p]) && kept[0].kind != 0 && kept[1].kind == 0 ->
        faults--; copy(c[p], kept[1]); after() }
#endif
#endif
#ifdef CAN_MISS
  :: d_step { faults > 0 && (granted[p] != 0 || ready[p] != 0) && ALIVE(p) ->
        faults--; granted[p] = 0; ready[p] = 0; printf("client %d: messages lost\n", p); after() }
#endif
#ifdef CAN_CRASH
  :: d_step { faults > 0 && st[p] != IDLE && ALIVE(p) -> faults--; crash(); after() }
  :: d_step { faults > 0 && c[p].kind != 0 && !c[p].ran && ALIVE(p) ->
        faults--; crash(); clear(c[p]); after() }
#endif
#ifdef CAN_FREEZE
  :: d_step { faults > 0 && st[p] != IDLE && ALIVE(p) && !frozen[p] ->
        faults--; frozen[p] = true; printf("client %d: frozen\n", p) }
  :: d_step { frozen[p] -> frozen[p] = false; printf("client %d: goes on\n", p) }
#endif
#ifdef CAN_FORCE
  /* The message may be late, or lost. */
  :: d_step { st[p] == RUNNING && h[p] == revoked && dl[p] > 0 && !frozen[p] ->
        dl[p] = 0; printf("client %d: its run was ended by force\n", p); after() }
#endif
  od
}

proctype World() {
end: do
  :: d_step { QUIET -> tick(); after() }
#ifndef URGENT
  :: d_step { delays > 0 && !QUIET -> delays--; tick(); after() }
#endif
#if FORGETS > 0
  :: d_step { forgets > 0 && rTok != 0 -> forgets--; forget(); after() }
#endif
#ifdef CAN_FORCE
  :: d_step { faults > 0 && own != 0 && revoked == 0 -> faults--; force(); after() }
#endif
#ifdef CAN_KEEP
  :: d_step { kept[0].kind != 0 -> serve(kept[0]); clear(kept[0]); after() }
#if COPIES > 1
  :: d_step { kept[1].kind != 0 -> serve(kept[1]); clear(kept[1]); after() }
#endif
#endif
  od
}

init {
  atomic {
    i = 0;
    do :: i < CLIENTS -> todo[i] = (i == 0 -> ROUNDS : 1); run Process(i); i++ :: else -> break od;
    i = 0;
    run World()
  }
}
