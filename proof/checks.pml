/* What must be true, the clock, and the end of the trouble. */

hidden byte m, n_, kk;

#define BELIEVES(t) (IN_STAY(t) && dl[t] > 0 && h[t] != revoked)

/* The caller's token is the one that Redis gave with this grant. */
#ifdef TOKENS
#define CHECK_TOKEN(t) assert(token[t] == tok)
#else
#define CHECK_TOKEN(t) assert(token[t] == CURRENT)
#endif

/* After every step. */
inline check() {
  m = 0;
  do
  :: m < QUEUES ->
     /* A caller that believes that it is the owner is the owner, and for at least as long as it believes. */
     if :: BELIEVES(m) -> assert(own == h[m]); assert(exp >= dl[m]); CHECK_TOKEN(m) :: else fi;
#if TRIES > 0
     if :: HASTY(m) && own != 0 -> wasHeld[m] = true :: else fi;
#endif
     m++
  :: else -> break
  od;
  if
  :: own != 0 && own != copied && st[QUEUE_OF(own)] != DEAD && h[QUEUE_OF(own)] != own && to[CLIENT(QUEUE_OF(own))].n == 0 && kept.kind == 0 && !UNDER_WAY ->
     /* A hold that its client has done with is on its way out of Redis. */
     kk = CLIENT(QUEUE_OF(own)); n_ = 0;
     do :: n_ < heard[kk].n && heard[kk].m[n_].hold != own -> n_++ :: else -> break od;
     assert(n_ < heard[kk].n)
  :: else
  fi;
  m = 0; n_ = 0; kk = 0
}

/* A caller is given the lock: its token is larger than any before. */
inline checkToken() {
#ifdef TOKENS
  if :: dl[t] > 0 && h[t] != revoked -> assert(TURN_TOKEN(t) > best); best = TURN_TOKEN(t) :: else fi
#else
  skip
#endif
}

/* A waiter's place is gone. That may happen when its messages were lost, until it has told Redis
 * that they are not heard. */
inline checkPlace() {
#ifdef PLACE_KEPT
#ifdef CAN_HANG
  assert(settling[k] > 0)
#else
  assert(false)
#endif
#else
  skip
#endif
}

/* "Taken" is not said of a hold that ended by its own command, as long as the chain of hand-overs
 * is unbroken. */
inline checkAnswer(kind_, hold_, old_) {
#ifdef TOKENS
  m = (kind_ == YIELD -> old_ : hold_);
  if
  :: (kind_ == YIELD || kind_ == RELEASE) && res == TAKEN -> assert(released[QUEUE_OF(m)] != m)
  :: else
  fi;
  m = 0
#else
  skip
#endif
}

#if defined(STAYS)
#define MUST_END(t) MUST_ACT(t)
#elif defined(LONG_HOLDS)
#define MUST_END(t) (st[t] == HOLDING && dl[t] == 0)
#else
#define MUST_END(t) (st[t] == HOLDING)
#endif
#define IDLE_QUEUE(t) (st[t] == DEAD || frozen[CLIENT(t)] || (!MUST_END(t) && st[t] != RETRYING && st[t] != SUBSCRIBING && !(st[t] == PARKED && IS_DUE(t) && !busy[t] && isFirst(t))))
#define IDLE_CLIENT(k) (to[k].n == to[k].ran && (frozen[k] || !ALIVE(k) || (to[k].n == 0 && heard[k].n == 0 && (SUBSCRIBED(k) || HUNG(k)))))
#if CLIENTS > 2
#define CLIENTS_IDLE (IDLE_CLIENT(0) && IDLE_CLIENT(1) && IDLE_CLIENT(2))
#else
#define CLIENTS_IDLE (IDLE_CLIENT(0) && IDLE_CLIENT(1))
#endif
#if QUEUES > 3
#define QUEUES_IDLE (IDLE_QUEUE(0) && IDLE_QUEUE(1) && IDLE_QUEUE(2) && IDLE_QUEUE(3))
#elif QUEUES > 2
#define QUEUES_IDLE (IDLE_QUEUE(0) && IDLE_QUEUE(1) && IDLE_QUEUE(2))
#else
#define QUEUES_IDLE (IDLE_QUEUE(0) && IDLE_QUEUE(1))
#endif
#if defined(PROMPT)
#define QUIET (!UNDER_WAY && CLIENTS_IDLE && QUEUES_IDLE)
#elif defined(CALM)
#define QUIET (!UNDER_WAY && CLIENTS_IDLE && (!calm || QUEUES_IDLE))
#else
#define QUIET (!UNDER_WAY && CLIENTS_IDLE)
#endif

inline tick() {
  printf("---- tick\n");
  if
  :: exp > 0 ->
     exp--;
#ifdef GRANT_KEPT
     /* No grant runs out unread. */
     if :: exp == 0 -> assert(IN_STAY(QUEUE_OF(own)) || st[QUEUE_OF(own)] == DEAD) :: else fi;
#endif
     if :: exp == 0 -> free() :: else fi
  :: else
  fi;
  i = 0;
  do :: i < QMAX -> if :: qt[i] > 0 -> qt[i]-- :: else fi; i++ :: else -> break od;
  i = 0;
  do
  :: i < CLIENTS ->
     x = 0;
     do :: x < to[i].n -> if :: AGES(to[i].c[x]) && to[i].c[x].age < AGE_MAX -> to[i].c[x].age++ :: else fi; x++ :: else -> break od;
     x = 0;
     do :: x < heard[i].n -> if :: heard[i].m[x].age < LAG_MAX -> heard[i].m[x].age++ :: else fi; x++ :: else -> break od;
     if
     :: wordTtl[i] > 0 -> wordTtl[i]--; if :: wordTtl[i] == 0 -> word[i] = false :: else fi
     :: else
     fi;
#ifdef SILENCE
     if :: silent[i] < ENTRY_TTL -> silent[i]++ :: else fi;
#endif
#ifdef CAN_HANG
     if :: settling[i] > 0 -> settling[i]-- :: else fi;
#endif
     i++
  :: else -> break
  od;
#ifdef CAN_REPEAT
  if :: late.kind != 0 && AGES(late) && late.age < AGE_MAX -> late.age++ :: else fi;
#endif
  if :: kept.kind != 0 && kept.age < AGE_MAX -> kept.age++ :: else fi;
  if
  :: ghost != 0 ->
     /* A late copy of an acquire owns the lock no longer than its caller may have thought. */
     if :: own != copied -> ghost = 0 :: else -> ghost++; assert(ghost <= REPLY + LEASE) fi
  :: else
  fi;
  i = 0;
  do
  :: i < QUEUES ->
     if :: dl[i] > 0 -> dl[i]-- :: else fi;
     passTime(i);
     if :: lag[i] == UNKNOWN && sage[i] < WINDOW -> sage[i]++ :: else fi;
#ifdef TIMED
     if :: due[i] > 0 -> due[i]-- :: else fi;
#endif
#if defined(CALM) || defined(URGENT)
     if
#ifdef CALM
     :: calm && WAITS(i) ->
#else
     :: WAITS(i) && !frozen[CLIENT(i)] ->
#endif
        /* Bounded waiting. */
        assert(waited[i] < BOUND);
        waited[i]++
     :: else
     fi;
#endif
     i++
  :: else -> break
  od
}

#ifdef CALM
/* From now on nothing fails, nobody comes, everybody acts at once; re-checks are as far away as
 * they may be. */
inline calmDown() {
  printf("---- calm\n");
  calm = true; faults = 0; aborts = 0; extends = 0; delays = 0; clear(kept);
  i = 0;
  do
  :: i < QUEUES -> waited[i] = 0; due[i] = (st[i] == PARKED -> RECHECK : 0); i++
  :: else -> break
  od;
  i = 0;
#ifdef CAN_FULL
  noMemory = false;
#endif
  do
  :: i < CLIENTS ->
     frozen[i] = false;
#ifdef CAN_HANG
     hung[i] = false;
#endif
     i++
  :: else -> break
  od
}
#endif

/* The server's clock goes back: its keys live longer, and S of the past is later than it would be now. */
inline stepBack() {
  printf("---- the server's clock steps back\n");
  if :: exp > 0 -> exp = exp + BACK :: else fi;
  i = 0;
  do :: i < qn -> qt[i] = qt[i] + BACK; i++ :: else -> break od;
  i = 0;
  do
  :: i < CLIENTS ->
     if :: wordTtl[i] > 0 -> wordTtl[i] = wordTtl[i] + BACK :: else fi;
     x = 0;
     do
     :: x < to[i].ran ->
        if :: to[i].c[x].res == HELD -> to[i].c[x].d = (to[i].c[x].d + BACK > LAG_MAX -> LAG_MAX : to[i].c[x].d + BACK) :: else fi;
        x++
     :: else -> break
     od;
     x = 0;
     do :: x < heard[i].n -> heard[i].m[x].age = (heard[i].m[x].age > BACK -> heard[i].m[x].age - BACK : 0); x++ :: else -> break od;
     i++
  :: else -> break
  od;
  i = 0;
  do
  :: i < QUEUES ->
     if :: st[i] == PARKED && lag[i] != UNKNOWN -> lag[i] = (lag[i] + BACK > LAG_MAX -> LAG_MAX : lag[i] + BACK) :: else fi;
     i++
  :: else -> break
  od
}

/* The keys end some time after the furthest deadline. */
#ifdef FLAW_QUEUE_ENDS_EARLY
#define isOver() (qt[0] == 0 && qt[1] == 0 && qt[2] == 0 && qt[3] == 0 && qt[4] == 0 && qt[5] == 0)
#elif CLIENTS > 2
#define isOver() (qt[0] == 0 && qt[1] == 0 && qt[2] == 0 && qt[3] == 0 && qt[4] == 0 && qt[5] == 0 && wordTtl[0] == 0 && wordTtl[1] == 0 && wordTtl[2] == 0)
#else
#define isOver() (qt[0] == 0 && qt[1] == 0 && qt[2] == 0 && qt[3] == 0 && qt[4] == 0 && qt[5] == 0 && wordTtl[0] == 0 && wordTtl[1] == 0)
#endif
inline dropQueue() {
  do :: qn > 0 -> remove(0) :: else -> break od
}
