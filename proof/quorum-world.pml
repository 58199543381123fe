/* What must be true of two holders, the clock, and what fails. */

inline check() {
#if defined(APART) || defined(EXCLUSION)
  assert(!(BELIEVES(0) && BELIEVES(1)));
#endif
  skip
}

inline tick() {
  printf("---- tick\n");
  n_ = 0;
  do
  :: n_ < NODES ->
     if :: ttl[n_] > 0 -> ttl[n_]--; if :: ttl[n_] == 0 -> own[n_] = 0 :: else fi :: else fi;
     if :: young[n_] > 0 -> young[n_]-- :: else fi;
     n_++
  :: else -> break
  od;
  n_ = 0; c_ = 0;
  do
  :: c_ < 2 ->
     if :: dl[c_] > 0 -> dl[c_]-- :: else fi;
     if :: st[c_] != IDLE && age[c_] < LEASE -> age[c_]++ :: else fi;
     if :: renewing[c_] && rage[c_] < LEASE -> rage[c_]++ :: else fi;
     c_++
  :: else -> break
  od;
  c_ = 0; failed = false
}

/* May this node fail? APART: of a holder's nodes the two others count, and all have answered since
 * the last fault; of an attempt, before its vote. */
#define STANDS_ON(c, m) (stand[AT(c, m)] == COUNTS && vote[AT(c, m)] != OUT)
#define WHOLE_BUT(c, n) (!BELIEVES(c) || (seen[c] && ((n) == 0 || STANDS_ON(c, 0)) && ((n) == 1 || STANDS_ON(c, 1)) && ((n) == 2 || STANDS_ON(c, 2))))
#define UNDECIDED(c, n) ((st[c] == VOTING || st[c] == AGREEING) && HAS(c, n))
#define NOBODY_OUT (!hung[0] && !hung[1] && !hung[2] && cut == NODES)
#ifdef APART
#define MAY_FAIL(n) (faults > 0 && !failed && NOBODY_OUT && WHOLE_BUT(0, n) && WHOLE_BUT(1, n) && (BELIEVES(0) || BELIEVES(1) || !(UNDECIDED(0, n) || UNDECIDED(1, n))))
#else
#define MAY_FAIL(n) (faults > 0)
#endif

/* APART: a renewal comes within the tick where the node can be reached; one that does not is a
 * fault. PROMPT: a vote, too. */
#ifdef APART
#define RENEWED_AT(c, n) !(IS_HOLDER(c) && said[AT(c, n)] == OUT && REACHES(c, n))
#else
#define RENEWED_AT(c, n) true
#endif
#ifdef PROMPT
#define VOTED_AT(c, n) !(vote[AT(c, n)] == OUT && REACHES(c, n))
#else
#define VOTED_AT(c, n) true
#endif
#define DONE_AT(c, n) (RENEWED_AT(c, n) && VOTED_AT(c, n))
#define DONE (DONE_AT(0, 0) && DONE_AT(0, 1) && DONE_AT(0, 2) && DONE_AT(1, 0) && DONE_AT(1, 1) && DONE_AT(1, 2))

inline fail(n) {
  faults--; seen[0] = false; seen[1] = false;
#ifdef APART
  failed = true; clean[0] = false; clean[1] = false;
  hit[0] = hit[0] || UNDECIDED(0, n); hit[1] = hit[1] || UNDECIDED(1, n)
#endif
  skip
}

inline forget(n) { printf("---- node %d forgets\n", n); own[n] = 0; ttl[n] = 0 }

inline restart(n) {
  forget(n); young[n] = RESTART_DELAY;
  /* Its connections are lost, and with them what is on its way. */
  if :: vote[AT(0, n)] == OUT -> dropVote(0, n) :: else fi;
  if :: vote[AT(1, n)] == OUT -> dropVote(1, n) :: else fi
}
