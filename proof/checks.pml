/* What must be true, the clock, and the end of the trouble. */

hidden byte m, n_, kk;

#define BELIEVES(t) (st[t] == HOLDING && dl[t] > 0 && h[t] != revoked)

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
  :: m < TURNS ->
     /* A caller that believes that it is the owner is the owner, and for at least as long as it believes. */
     if :: BELIEVES(m) -> assert(own == h[m]); assert(exp >= dl[m]); CHECK_TOKEN(m) :: else fi;
     m++
  :: else -> break
  od;
  if
  :: own != 0 && own != copied && st[TURN(own)] != DEAD && h[TURN(own)] != own && to[CLIENT(TURN(own))].n == 0 && kept.kind == 0 ->
     /* A hold that its client has done with is on its way out of Redis. */
     kk = CLIENT(TURN(own)); n_ = 0;
     do :: n_ < heard[kk].n && heard[kk].m[n_].hold != own -> n_++ :: else -> break od;
     assert(n_ < heard[kk].n)
  :: else
  fi;
  m = 0; n_ = 0; kk = 0
}

/* A caller is given the lock: its token is larger than any before. */
inline checkToken() {
#ifdef TOKENS
  if :: dl[t] > 0 && h[t] != revoked -> assert(token[t] + passes[t] > best); best = token[t] + passes[t] :: else fi
#else
  skip
#endif
}

/* "Taken" is not said of a hold that ended by its own command, as long as the chain of hand-overs is unbroken. */
inline checkAnswer(kind_, hold_, old_) {
#ifdef TOKENS
  m = (kind_ == YIELD -> old_ : hold_);
  if
  :: (kind_ == YIELD || kind_ == RELEASE) && res == TAKEN -> assert(released[TURN(m)] != m)
  :: else
  fi;
  m = 0
#else
  skip
#endif
}

#define IDLE_TURN(t) (st[t] == DEAD || frozen[CLIENT(t)] || (st[t] != HOLDING && st[t] != RETRYING && st[t] != SUBSCRIBING && !(st[t] == PARKED && IS_DUE(t) && !busy[t] && isFirst(t))))
#define IDLE_CLIENT(k) (to[k].n == to[k].ran && (frozen[k] || !ALIVE(k) || (to[k].n == 0 && heard[k].n == 0 && SUBSCRIBED(k))))
#if CLIENTS > 2
#define CLIENTS_IDLE (IDLE_CLIENT(0) && IDLE_CLIENT(1) && IDLE_CLIENT(2))
#else
#define CLIENTS_IDLE (IDLE_CLIENT(0) && IDLE_CLIENT(1))
#endif
#if TURNS > 3
#define TURNS_IDLE (IDLE_TURN(0) && IDLE_TURN(1) && IDLE_TURN(2) && IDLE_TURN(3))
#elif TURNS > 2
#define TURNS_IDLE (IDLE_TURN(0) && IDLE_TURN(1) && IDLE_TURN(2))
#else
#define TURNS_IDLE (IDLE_TURN(0) && IDLE_TURN(1))
#endif
#if defined(URGENT)
#define QUIET (CLIENTS_IDLE && TURNS_IDLE)
#elif defined(CALM)
#define QUIET (CLIENTS_IDLE && (!calm || TURNS_IDLE))
#else
#define QUIET CLIENTS_IDLE
#endif

inline tick() {
  printf("---- tick\n");
  if
  :: exp > 0 ->
     exp--;
#ifdef TURN_KEPT
     /* No grant runs out unread. */
     if :: exp == 0 -> assert(st[TURN(own)] == HOLDING || st[TURN(own)] == DEAD) :: else fi;
#endif
     if :: exp == 0 -> free() :: else fi
  :: else
  fi;
  i = 0;
  do :: i < QMAX -> if :: qd[i] > 0 -> qd[i]-- :: else fi; i++ :: else -> break od;
  i = 0;
  do
  :: i < CLIENTS ->
     x = 0;
     do :: x < to[i].n -> if :: AGES(to[i].c[x]) && to[i].c[x].age < AGE_MAX -> to[i].c[x].age++ :: else fi; x++ :: else -> break od;
     x = 0;
     do :: x < heard[i].n -> if :: heard[i].m[x].age < LAG_MAX -> heard[i].m[x].age++ :: else fi; x++ :: else -> break od;
     i++
  :: else -> break
  od;
  if :: kept.kind != 0 && kept.age < AGE_MAX -> kept.age++ :: else fi;
  if
  :: ghost != 0 ->
     /* A late copy of an acquire owns the lock no longer than its caller may have thought. */
     if :: own != copied -> ghost = 0 :: else -> ghost++; assert(ghost <= REPLY + LEASE) fi
  :: else
  fi;
  i = 0;
  do
  :: i < TURNS ->
     if :: dl[i] > 0 -> dl[i]-- :: else fi;
     if :: lag[i] == UNKNOWN && sage[i] < WINDOW -> sage[i]++ :: else fi;
#if defined(CALM) || defined(URGENT)
     if :: due[i] > 0 -> due[i]-- :: else fi;
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
/* From now on nothing fails, nobody comes, everybody acts at once; re-checks are as far away as they may be. */
inline calmDown() {
  printf("---- calm\n");
  calm = true; faults = 0; aborts = 0; extends = 0; delays = 0; clear(kept);
  i = 0;
  do
  :: i < TURNS -> waited[i] = 0; due[i] = (st[i] == PARKED -> RECHECK : 0); i++
  :: else -> break
  od;
  i = 0;
  do :: i < CLIENTS -> frozen[i] = false; i++ :: else -> break od
}
#endif

/* The server's clock goes back: its keys live longer, and S of the past is later than it would be now. */
inline stepBack() {
  printf("---- the server's clock steps back\n");
  if :: exp > 0 -> exp = exp + BACK :: else fi;
  i = 0;
  do :: i < qn -> qd[i] = qd[i] + BACK; i++ :: else -> break od;
  i = 0;
  do
  :: i < CLIENTS ->
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
  :: i < TURNS ->
     if :: st[i] == PARKED && lag[i] != UNKNOWN -> lag[i] = (lag[i] + BACK > LAG_MAX -> LAG_MAX : lag[i] + BACK) :: else fi;
     i++
  :: else -> break
  od
}

/* Both keys of the queue end some time after the furthest deadline. */
#define isOver() (qd[0] == 0 && qd[1] == 0 && qd[2] == 0 && qd[3] == 0 && qd[4] == 0 && qd[5] == 0)
inline dropQueue() {
  do :: qn > 0 -> remove(0) :: else -> break od
}
