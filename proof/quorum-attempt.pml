/* An attempt to take the lock, and its end: src/quorum/quorum-kind.ts, votes.ts, quorum-hold.ts. `c`
 * is the client, `n` the node. */

inline start(c) {
  printf("client %d asks\n", c);
  st[c] = VOTING; todo[c]--; age[c] = 0;
  vote[AT(c, 0)] = OUT; vote[AT(c, 1)] = OUT; vote[AT(c, 2)] = OUT
}

/* A vote is executed; behind the decision too. A young node is not asked. */
inline castVote(c, n) {
  printf("client %d: vote at node %d, owner %d\n", c, n, own[n]);
  if
#ifndef FLAW_YOUNG_VOTES
  :: young[n] > 0 -> vote[AT(c, n)] = FAILED
#endif
  :: else ->
     if
     :: own[n] == 0 -> take(c, n, LEASE); vote[AT(c, n)] = YES
     :: own[n] != 0 -> vote[AT(c, n)] = NO
     fi
  fi;
  if
  :: st[c] == VOTING -> decideVotes(c)
  :: DECIDED(c) ->
     if
     :: vote[AT(c, n)] != YES -> stands(c, n, MISSING)
#ifdef FLAW_LATE_VOTE_COUNTS
     :: vote[AT(c, n)] == YES -> stands(c, n, COUNTS)
#else
     /* A vote that took long counts as one that came behind somebody else. */
     :: vote[AT(c, n)] == YES && (age[c] > 0 || behind[AT(c, n)]) -> stands(c, n, LATE)
     :: vote[AT(c, n)] == YES && age[c] == 0 && !behind[AT(c, n)] -> stands(c, n, COUNTS)
#endif
     fi;
     forgetVotes(c)
  :: else -> forgetVotes(c)
  fi
}

/* The vote is given up: its connection was lost, or its time is over. It is not executed any more. */
inline dropVote(c, n) {
  printf("client %d: vote at node %d given up\n", c, n);
  vote[AT(c, n)] = FAILED;
  if
  :: st[c] == VOTING -> decideVotes(c)
  :: DECIDED(c) -> stands(c, n, MISSING); forgetVotes(c)
  :: else -> forgetVotes(c)
  fi
}

inline grant(c) {
  printf("client %d: granted\n", c);
  if
  :: age[c] >= LEASE -> giveBack(c)
  :: else ->
     st[c] = HOLDING; dl[c] = LEASE - age[c]; other[c] = false; seen[c] = !hit[c];
     /* It has a majority indeed. Else the other one is the holder, and this one believes it in vain. */
     if :: IS_HOLDER(1 - c) && HAS(c, 0) + HAS(c, 1) + HAS(c, 2) >= MAJORITY ->
        other[1 - c] = true;
        do :: n_ < NODES -> behind[AT(1 - c, n_)] = (vote[AT(1 - c, n_)] == OUT); n_++ :: else -> break od;
        n_ = 0
     :: else
     fi
  fi
}

/* What was voted is of no use any more: only whether a vote is still out, and since when. */
inline forgetVotes(c) {
  n_ = 0;
  do
  :: n_ < NODES -> if :: vote[AT(c, n_)] != OUT -> vote[AT(c, n_)] = NOT_ASKED; behind[AT(c, n_)] = false :: else fi; n_++
  :: else -> break
  od;
  n_ = 0;
  if :: st[c] != AGREEING && vote[AT(c, 0)] != OUT && vote[AT(c, 1)] != OUT && vote[AT(c, 2)] != OUT -> age[c] = 0 :: else fi
}

/* Two votes: the lock is granted, or, when that took long, the two are asked whether they still
 * have the hold. */
inline decideVotes(c) {
  tally(vote, c, YES);
  if
  :: yes >= MAJORITY ->
     n_ = 0;
     do
     :: n_ < NODES ->
        if
        :: vote[AT(c, n_)] == YES || vote[AT(c, n_)] == OUT -> stands(c, n_, COUNTS)
        :: else -> stands(c, n_, MISSING)
        fi;
        n_++
     :: else -> break
     od;
     n_ = 0;
     if
#ifndef FLAW_SLOW_VOTES_COUNT
     :: age[c] > 0 ->
        st[c] = AGREEING;
        do
        :: n_ < NODES -> if :: vote[AT(c, n_)] == YES -> said[AT(c, n_)] = OUT :: else -> said[AT(c, n_)] = FAILED fi; n_++
        :: else -> break
        od;
        n_ = 0
#endif
     :: else -> grant(c)
     fi;
     forgetVotes(c)
  :: yes + open_ < MAJORITY -> giveBack(c); forgetVotes(c)
  :: else
  fi
}

inline agreed(c, n, what) {
  printf("client %d: asks node %d again, owner %d\n", c, n, own[n]);
  said[AT(c, n)] = what;
  tally(said, c, YES);
  if
  :: yes >= MAJORITY -> grant(c); tidy(c); forgetVotes(c)
  :: yes + open_ < MAJORITY -> giveBack(c); forgetVotes(c)
  :: else
  fi
}

inline giveBack(c) {
  printf("client %d: gives back\n", c);
  st[c] = ENDING; dl[c] = 0; other[c] = false; renewing[c] = false; decided[c] = false; rage[c] = 0; seen[c] = false; clean[c] = false; over[c] = false; hit[c] = false;
  n_ = 0;
  do
  :: n_ < NODES -> said[AT(c, n_)] = NOT_ASKED; stand[AT(c, n_)] = COUNTS; same[AT(c, n_)] = false; n_++
  :: else -> break
  od;
  n_ = 0
}

inline rest(c) {
  st[c] = IDLE; age[c] = 0;
  vote[AT(c, 0)] = NOT_ASKED; vote[AT(c, 1)] = NOT_ASKED; vote[AT(c, 2)] = NOT_ASKED
}

/* Nothing of it is on its way, and no node has it. */
#define IS_OVER(c, n) (vote[AT(c, n)] != OUT && !HAS(c, n))
