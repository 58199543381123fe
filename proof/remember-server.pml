/* Redis: lua/remember/ and what it shares with lua/handoff/. `x` is a command. */

hidden byte i, j, n_, w_, cap;

#define ALIVE(p) (st[p] != DEAD)

inline setFree() { own = 0; oTok = 0; oExp = 0; behind = false }

inline owns(hold_, ticks) { top++; own = hold_; oTok = top; oExp = ticks; behind = false }

inline pop() {
  w_ = q[0]; i = 1;
  do :: i < qn -> q[i - 1] = q[i]; i++ :: else -> break od;
  qn--; q[qn] = 0; i = 0
}

inline drop(hold_) {
  i = 0;
  do :: i < qn && q[i] != hold_ -> i++ :: else -> break od;
  if
  :: i < qn ->
     do :: i + 1 < qn -> q[i] = q[i + 1]; i++ :: else -> break od;
     qn--; q[qn] = 0
  :: else
  fi;
  i = 0
}

/* To the first live waiter, or to none. A crashed client's subscription is gone. */
inline handOver() {
  setFree();
  do
  :: own == 0 && qn > 0 ->
     pop();
     if
     :: ALIVE(CLIENT(w_)) ->
        owns(w_, WINDOW); granted[CLIENT(w_)] = w_;
        printf("  granted to %d, token %d\n", w_, oTok)
     :: else
     fi
  :: else -> break
  od;
  w_ = 0
}

/* Tells the first waiters of a result. Then the next one is granted the lock, and finds it. */
inline notify() {
  n_ = 0;
  do
  :: n_ < CHUNK && qn > 0 ->
     pop();
     if :: ALIVE(CLIENT(w_)) -> ready[CLIENT(w_)] = w_; printf("  ready %d\n", w_) :: else fi;
     n_++
  :: else -> break
  od;
  n_ = 0; w_ = 0
}

#ifdef FLAW_KEEP_FOR_WAITERS
#define FOR_WAITER(s) (rKeep > 0)
#else
#define FOR_WAITER(s) ((s) != 0 && rTok >= (s))
#endif
#ifdef FLAW_COPY_ENDS_RUN
#define IS_OLD(x) true
#else
/* What was stored behind its grant does not end a hold: its body may have begun. */
#define IS_OLD(x) !(own == x.hold && behind)
#endif
#define ACCEPTS(x) (rTok != 0 && (rKeep > 0 || FOR_WAITER(x.seen)) && IS_OLD(x))

inline take(x) {
  if
  :: x.age > REPLY -> x.res = STALE
  :: x.age <= REPLY && ACCEPTS(x) ->
     x.res = KEPT; x.rtok = rTok; x.fresh = (rKeep > 0);
     drop(x.hold);
#ifndef FLAW_KEPT_HOLDS
     if :: own == x.hold -> notify(); handOver() :: else fi
#endif
     skip
  :: else ->
     if
     :: own == x.hold -> oExp = MAX(oExp, LEASE)
     :: own == 0 ->
        /* First the waiters: one of them may be this hold. */
        do :: qn > 0 && !ALIVE(CLIENT(q[0])) -> pop() :: else -> break od;
        w_ = 0;
        if
        :: qn == 0 -> owns(x.hold, LEASE)
        :: qn > 0 && q[0] == x.hold -> drop(x.hold); owns(x.hold, LEASE)
        :: else -> handOver()
        fi
     :: else
     fi;
     x.rtok = oTok;
     if
     :: own == x.hold -> x.res = OWNER; checkTaken(x)
     :: else ->
        x.res = HELD;
        if :: x.kind == QUEUE -> enqueue(x.hold) :: else fi
     fi
  fi
}

/* Queues, unless its entry is there. */
inline enqueue(hold_) {
  i = 0;
  do :: i < qn && q[i] != hold_ -> i++ :: else -> break od;
  if :: i == qn -> assert(qn < QMAX); q[qn] = hold_; qn++ :: else fi;
  i = 0
}

inline recheck(x) {
  i = 0;
  do :: i < qn && q[i] != x.hold -> i++ :: else -> break od;
  if
  :: own == x.hold -> x.res = OWNER; oExp = MAX(oExp, LEASE)
  :: own != x.hold && i == qn -> x.res = GONE
  :: else ->
     x.res = HELD;
     if
     :: own == 0 ->
        do :: qn > 0 && !ALIVE(CLIENT(q[0])) -> pop() :: else -> break od;
        w_ = 0;
        if
        :: q[0] == x.hold -> drop(x.hold); owns(x.hold, LEASE); x.res = OWNER
        :: else -> handOver()
        fi
     :: else
     fi
  fi;
  i = 0
}

#ifdef FLAW_FINISH_BY_HOLD
#define IS_RUN(x) (own == x.hold)
#else
/* By its token too: a late copy of `take` may have taken the lock once more for the same hold. */
#define IS_RUN(x) (own == x.hold && oTok == x.tok)
#endif
#ifdef FLAW_COPY_STORES
#define IS_COPY(x) false
#else
#define IS_COPY(x) (lTok == x.tok)
#endif
#ifdef FLAW_OLDER_REPLACES
#define IS_OLDER(x) false
#else
#define IS_OLDER(x) (lTok > x.tok)
#endif
#ifdef FLAW_LATE_WITHOUT_LIMIT
#define MAY_BE_LATE(x) true
#elif defined(LATE_IF_FREE)
#define MAY_BE_LATE(x) (x.lim > 0 && own == 0)
#else
#define MAY_BE_LATE(x) (x.lim > 0)
#endif
#ifdef FLAW_ENDS_WITH_KEEP
#define TTL_OF(keep_) (keep_)
#else
#define TTL_OF(keep_) MAX(keep_, FLOOR)
#endif

inline store(x) {
  checkStored(x);
  rTok = x.tok; rKeep = x.keep; rTtl = TTL_OF(rKeep);
#ifdef FLAW_LATE_LEAVES_LAST
  if :: IS_RUN(x) -> lTok = x.tok; lTtl = LAST :: else fi;
#else
  lTok = x.tok; lTtl = LAST;
#endif
  if :: rTtl == 0 -> rTok = 0 :: else fi;
  behind = (own != 0 && own != x.hold);
  x.res = STORED;
  printf("  result %d stored\n", x.tok)
}

inline finish(x) {
  if
  :: IS_RUN(x) -> store(x); notify(); handOver()
  :: !IS_RUN(x) && IS_COPY(x) -> x.res = STORED
  :: !IS_RUN(x) && !IS_COPY(x) && IS_OLDER(x) -> x.res = TAKEN
  /* It tells no waiter: the run under way will, or the next re-check finds the lock free. */
  /* With its hold as the owner again, a late copy of its first command was renewed. */
  :: !IS_RUN(x) && !IS_COPY(x) && !IS_OLDER(x) && own != x.hold && MAY_BE_LATE(x) -> store(x)
  :: else -> x.res = GONE
  fi
}

inline serve(x) {
  printf("Redis: command %d of hold %d, seen %d, token %d\n", x.kind, x.hold, x.seen, x.tok);
  x.ran = true; x.since = 0;
  if
  :: x.kind == TRY || x.kind == QUEUE -> take(x)
  :: x.kind == AGAIN -> recheck(x)
  :: x.kind == RENEW ->
     if :: own == x.hold -> x.res = DONE; oExp = MAX(oExp, LEASE) :: else -> x.res = GONE fi
  :: x.kind == FINISH -> finish(x)
  :: x.kind == RELEASE -> x.res = DONE; if :: own == x.hold -> handOver() :: else fi
  fi;
#ifndef CAN_BREAK
  x.seen = 0; x.tok = 0; x.lim = 0; x.keep = 0;
#endif
  if :: x.res != OWNER && x.res != HELD && x.res != KEPT -> x.rtok = 0 :: else fi;
  if :: x.res != OWNER && x.res != DONE -> x.age = 0 :: else fi;
  printf("  answer %d, token %d; owner %d with token %d for %d; result %d for %d, last %d\n",
    x.res, x.rtok, own, oTok, oExp, rTok, rKeep, lTok)
}

/* A hold without a caller. */
inline leave(hold_) { drop(hold_); if :: own == hold_ -> handOver() :: else fi }

inline forget() {
  printf("forget\n");
  if :: dead < rTok -> dead = rTok :: else fi;
  rTok = 0; rKeep = 0; rTtl = 0; behind = false; owed = 0
}

inline force() { printf("---- forced release of %d\n", own); revoked = own; handOver() }
