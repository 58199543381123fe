/* The quorum lock as built, for Spin: three nodes, two clients. README.md says what is modelled and
 * how to run it.
 *
 * A command to a node and its answer are one step, unless the answer is lost. Steps of different
 * nodes come in any order, and anything may happen between them. Time is relative, in ticks: TTLs,
 * deadlines and ages move together.
 *
 *   ROUNDS=n         attempts of each client
 *   FAULTS=n         faults in one run, of the kinds CAN_FORGET CAN_RESTART CAN_HANG CAN_CUT
 *                    CAN_LOSE
 *   RIVAL            client 1 neither renews its leases nor brings them to further nodes
 *   APART            a node fails only when the holder knows, or could know, that it stands on the
 *                    two others
 *   EXCLUSION        without APART too: nobody believes in a lease while somebody else does
 *   PROMPT           votes are executed within the tick
 *   KEPT             with APART: no lease is lost by its nodes' answers
 *   FLAW_…           one rule is left out: the checks must find it */
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef FAULTS
#define FAULTS 2
#endif

#define NODES 3
#define MAJORITY 2
#ifndef LEASE
#define LEASE 2
#endif
/* A node that restarted votes again when every lease of before is over. */
#define RESTART_DELAY (LEASE + 1)

/* A client */
#define IDLE 0
#define VOTING 1
#define AGREEING 2
#define HOLDING 3
#define ENDING 4
/* What was asked of a node: a vote, or a renewal */
#define NOT_ASKED 0
#define OUT 1
#define YES 2
#define NO 3
#define FAILED 4
/* What a node is to a holder: src/quorum/quorum-hold.ts */
#define COUNTS 0
#define MISSING 1
#define LATE 2

#define ID(c) ((c) + 1)
#define AT(c, n) ((c) * NODES + (n))

byte own[NODES], ttl[NODES], young[NODES];   /* a node: its key, and until when it does not vote */
bool hung[NODES];
byte cut = NODES;                            /* client 0 does not reach this node */

byte st[2], todo[2], dl[2], age[2];          /* age: ticks since the votes were sent */
byte vote[6], stand[6];
byte said[6];                                /* of the renewal, or of the agreement, that is under way */
bool same[6];                                /* the node has been to the holder what it was when that was sent */
bool behind[6];                              /* a vote that is out will come behind somebody else's lease: by its token or its age it shows */
bool renewing[2], decided[2];
byte rage[2];                                /* ticks since it was sent */
bool other[2], over[2];                      /* somebody else has had the lock since this one was granted; and when the renewal was sent */
bool seen[2];                                /* since the last fault every node has answered a renewal */
bool clean[2];                               /* no fault since the renewal that is under way was sent */
bool hit[2];                                 /* a node failed that had voted for this attempt */
byte faults = FAULTS;
bool failed;                                 /* a fault in this tick */

hidden byte c_, n_, yes, open_;

#define BELIEVES(c) (st[c] == HOLDING && dl[c] > 0)
#define REACHES(c, n) (!hung[n] && !((c) == 0 && cut == (n)))
#ifdef RIVAL
#define KEEPS(c) ((c) == 0 && BELIEVES(c))
#else
#define KEEPS(c) BELIEVES(c)
#endif
#define HAS(c, n) (own[n] == ID(c))
#define IS_HOLDER(c) (st[c] == HOLDING)
#define DECIDED(c) (IS_HOLDER(c) || st[c] == AGREEING)

inline stands(c, n, as) { stand[AT(c, n)] = as; same[AT(c, n)] = false }

inline take(c, n, ticks) { own[n] = ID(c); if :: ttl[n] < ticks -> ttl[n] = ticks :: else fi }

/* How many of a client's three have this answer, and how many are still out. */
#define IS(list, c, n, what) (list[AT(c, n)] == (what) -> 1 : 0)
#define COUNT(list, c, what) (IS(list, c, 0, what) + IS(list, c, 1, what) + IS(list, c, 2, what))
#define tally(list, c, what) yes = COUNT(list, c, what); open_ = COUNT(list, c, OUT)

#include "quorum-attempt.pml"
#include "quorum-holder.pml"
#include "quorum-world.pml"

/* A renewal right behind another one changes nothing. */
#define RENEWS(c) (dl[c] < LEASE || !seen[c] || stand[AT(c, 0)] == LATE || stand[AT(c, 1)] == LATE || stand[AT(c, 2)] == LATE)

proctype Client(byte c) {
  byte n;
end: do
  :: d_step { st[c] == IDLE && todo[c] > 0 -> start(c) }
  :: d_step { KEEPS(c) && !renewing[c] && RENEWS(c) -> renew(c) }
  :: d_step { IS_HOLDER(c) -> giveBack(c); forgetVotes(c) }   /* an unlock, or its time is over */
  :: d_step { st[c] == ENDING && IS_OVER(c, 0) && IS_OVER(c, 1) && IS_OVER(c, 2) -> rest(c) }
  od
}

proctype Wire(byte c; byte n) {
end: do
  :: d_step { vote[AT(c, n)] == OUT && REACHES(c, n) && age[c] < 2 -> castVote(c, n); check() }
  :: d_step { vote[AT(c, n)] == OUT && (age[c] > 0 || !REACHES(c, n)) -> dropVote(c, n); check() }
  :: d_step { st[c] == AGREEING && said[AT(c, n)] == OUT && REACHES(c, n) && HAS(c, n) -> agreed(c, n, YES); check() }
  :: d_step { st[c] == AGREEING && said[AT(c, n)] == OUT && REACHES(c, n) && !HAS(c, n) -> agreed(c, n, NO) }
  :: d_step { st[c] == AGREEING && said[AT(c, n)] == OUT && !REACHES(c, n) -> agreed(c, n, FAILED) }
  :: d_step { IS_HOLDER(c) && dl[c] > 0 && said[AT(c, n)] == OUT && REACHES(c, n) && vote[AT(c, n)] != OUT -> renewAt(c, n); check() }
  :: d_step { IS_HOLDER(c) && said[AT(c, n)] == OUT && !REACHES(c, n) -> said[AT(c, n)] = FAILED; answered(c, n); check() }
  :: d_step { KEEPS(c) && stand[AT(c, n)] == MISSING && REACHES(c, n) && MAY_JOIN(n) && (own[n] == 0 || HAS(c, n)) -> join(c, n, true); check() }
  :: d_step { st[c] == ENDING && vote[AT(c, n)] != OUT && HAS(c, n) && REACHES(c, n) -> own[n] = 0; ttl[n] = 0; printf("client %d: released at node %d\n", c, n) }
#ifdef CAN_LOSE
  /* It is executed, and its answer is lost. */
  :: d_step { faults > 0 && vote[AT(c, n)] == OUT && REACHES(c, n) && age[c] < 2 && own[n] == 0 && young[n] == 0 -> faults--; take(c, n, LEASE); dropVote(c, n) }
  :: d_step { faults > 0 && KEEPS(c) && stand[AT(c, n)] == MISSING && REACHES(c, n) && MAY_JOIN(n) && own[n] == 0 -> faults--; join(c, n, false) }
  :: d_step { faults > 0 && IS_HOLDER(c) && dl[c] > 0 && said[AT(c, n)] == OUT && REACHES(c, n) && HAS(c, n) -> faults--; ttl[n] = LEASE; said[AT(c, n)] = FAILED; answered(c, n) }
#endif
  od
}

proctype World(byte n) {
end: do
#ifdef CAN_FORGET
  :: d_step { MAY_FAIL(n) && !hung[n] -> fail(n); forget(n); check() }
#endif
#ifdef CAN_RESTART
  :: d_step { MAY_FAIL(n) && !hung[n] -> fail(n); restart(n); check() }
#endif
#ifdef CAN_HANG
  :: d_step { MAY_FAIL(n) && !hung[n] -> fail(n); hung[n] = true; printf("---- node %d hangs\n", n) }
  :: d_step { hung[n] -> hung[n] = false; printf("---- node %d is back\n", n) }
#endif
#ifdef CAN_CUT
  :: d_step { MAY_FAIL(n) && cut == NODES -> fail(n); cut = n; printf("---- client 0 is cut off from node %d\n", n) }
  :: d_step { cut == n -> cut = NODES; printf("---- client 0 reaches node %d\n", n) }
#endif
  :: d_step { n == 0 && DONE -> tick(); check() }
  od
}

init {
  atomic {
    todo[0] = ROUNDS; todo[1] = ROUNDS;
    run Client(0); run Client(1);
    run Wire(0, 0); run Wire(0, 1); run Wire(0, 2); run Wire(1, 0); run Wire(1, 1); run Wire(1, 2);
    run World(0); run World(1); run World(2)
  }
}
