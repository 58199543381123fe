/* A holder: renewals and joinings, src/quorum/quorum-hold.ts, repair.ts. */

inline renew(c) {
  printf("client %d: renews\n", c);
  renewing[c] = true; decided[c] = false; rage[c] = 0; clean[c] = true; over[c] = other[c];
  n_ = 0;
  do
  :: n_ < NODES -> said[AT(c, n_)] = OUT; same[AT(c, n_)] = true; n_++
  :: else -> break
  od;
  n_ = 0
}

/* What the answer of one node changes, once a majority has renewed. */
inline learn(c, n) {
  if
  :: said[AT(c, n)] == NO && same[AT(c, n)] ->
#ifndef FLAW_NO_REJOIN
     stand[AT(c, n)] = MISSING;
#endif
     skip
#ifdef FLAW_STALE_CONFIRMS
  :: said[AT(c, n)] == YES && stand[AT(c, n)] == LATE ->
#else
  :: said[AT(c, n)] == YES && stand[AT(c, n)] == LATE && same[AT(c, n)] ->
#endif
     stand[AT(c, n)] = COUNTS
  :: else
  fi
}

inline judge(c) {
  yes = 0; open_ = 0; n_ = 0;
  do
  :: n_ < NODES ->
     if
#ifdef FLAW_LATE_NODE_COUNTS
     :: said[AT(c, n_)] == YES && stand[AT(c, n_)] != MISSING -> yes++
#else
     :: said[AT(c, n_)] == YES && stand[AT(c, n_)] == COUNTS -> yes++
#endif
     /* A node that is missing has not got the hold, whatever it would say. */
     :: (said[AT(c, n_)] == OUT || said[AT(c, n_)] == FAILED) && stand[AT(c, n_)] != MISSING -> open_++
     :: else
     fi;
     n_++
  :: else -> break
  od;
  n_ = 0;
  if
  :: yes >= MAJORITY && !decided[c] ->
     decided[c] = true;
     printf("client %d: renewed; its nodes are %d %d %d\n", c, stand[AT(c, 0)], stand[AT(c, 1)], stand[AT(c, 2)]);
     /* A lease goes on only where nobody else has had the lock. */
     assert(!over[c]);
     if :: dl[c] + rage[c] < LEASE -> dl[c] = LEASE - rage[c] :: else fi;
     do :: n_ < NODES -> learn(c, n_); n_++ :: else -> break od;
     n_ = 0
  :: !decided[c] && yes + open_ < MAJORITY ->
#ifdef FLAW_REJOIN_ALWAYS
     do :: n_ < NODES -> learn(c, n_); n_++ :: else -> break od;
     n_ = 0; renewing[c] = false
#else
#ifdef KEPT
     /* Single faults, each recovered from, cost no lease. */
     assert(hit[c]);
#endif
     giveBack(c); forgetVotes(c)
#endif
  :: else
  fi
}

inline finish(c) {
  tally(said, c, FAILED);
  if :: open_ == 0 -> seen[c] = seen[c] || (yes == 0 && clean[c]); renewing[c] = false; rage[c] = 0; decided[c] = false; clean[c] = false; over[c] = false; tidy(c) :: else fi
}

/* Nothing depends on these between two renewals. */
inline tidy(c) {
  do
  :: n_ < NODES -> said[AT(c, n_)] = NOT_ASKED; same[AT(c, n_)] = false; n_++
  :: else -> break
  od;
  n_ = 0
}

/* Renewed, gone or taken at one node. Behind the vote, which is on the same connection. */
inline renewAt(c, n) {
  if
  :: HAS(c, n) -> ttl[n] = (ttl[n] < LEASE -> LEASE : ttl[n]); said[AT(c, n)] = YES
  :: else -> said[AT(c, n)] = NO
  fi;
  answered(c, n)
}

inline answered(c, n) {
  printf("client %d: node %d says %d (2 yes, 3 no)\n", c, n, said[AT(c, n)]);
  if :: decided[c] -> learn(c, n) :: else -> judge(c) fi;
  if :: renewing[c] -> finish(c) :: else fi
}

/* A node that has not got the hold takes it for what is left of the lease. */
inline join(c, n, isHeard) {
  printf("client %d: node %d takes the hold, heard %d\n", c, n, isHeard);
  if
  :: own[n] == 0 || HAS(c, n) ->
     take(c, n, dl[c]);
     if :: isHeard -> stands(c, n, LATE) :: else fi
  :: else
  fi
}
#ifdef YOUNG_JOINS
#define MAY_JOIN(n) true
#else
#define MAY_JOIN(n) (young[n] == 0)
#endif
