/* What must be true, the clock, and ranks instead of tokens. */

/* A result is newer than all that were stored before. */
inline checkStored(x) {
  assert(x.tok > best);
  best = x.tok; owed = MAX(x.keep, FLOOR);
  if :: x.keep == 0 -> dead = x.tok :: else fi
}

/* A caller that may run has seen no run whose result is there, unless that came behind its grant. */
inline checkTaken(x) { assert(!(owed > 0 && x.seen != 0 && best >= x.seen && !behind)) }
inline checkTaken2(p) { assert(!(owed > 0 && seen[p] != 0 && best >= seen[p] && !behind)) }

#define BELIEVES(p) (st[p] == RUNNING && dl[p] > 0 && h[p] != revoked)

/* After every step. */
inline after() {
  i = 0; n_ = 0;
  do
  :: i < CLIENTS ->
     /* Whose lease lasts has the lock, for at least as long as it believes. */
     if :: BELIEVES(i) -> assert(own == h[i] && oTok == run_[i] && oExp >= dl[i]) :: else fi;
     i++
  :: else -> break
  od;
  i = 0; n_ = 0;
  tidy()
}

#define WAITS(p) (st[p] == ASKING || st[p] == PARKED)
#ifdef FLAW_READY_ONLY
#define MUST_LOOK(p) false
#else
#define MUST_LOOK(p) (st[p] == PARKED && IS_DUE(p))
#endif
/* Nothing of it is on its way or unread. URGENT: nor could it do anything. */
#define HAS_READ(p) (c[p].kind == 0 && granted[p] == 0 && ready[p] == 0)
#ifdef URGENT
#define IS_DONE(p) (HAS_READ(p) && st[p] != RUNNING && !MUST_LOOK(p))
#else
#define IS_DONE(p) HAS_READ(p)
#endif
#define RESTS(p) ((c[p].kind == 0 || c[p].ran) && (!ALIVE(p) || frozen[p] || IS_DONE(p)))
#if CLIENTS > 2
#define QUIET (RESTS(0) && RESTS(1) && RESTS(2))
#else
#define QUIET (RESTS(0) && RESTS(1))
#endif

inline less(v) { if :: v > 0 -> v-- :: else fi }
/* Commands whose time of sending counts. */
#define AGES(x) (x.kind == TRY || x.kind == QUEUE || x.kind == RENEW)
inline ages(x) {
  if :: AGES(x) && x.age <= MAX(LEASE, REPLY) -> x.age++ :: else fi;
  if :: x.ran && (x.res == OWNER || x.res == DONE) && x.since < LIMIT -> x.since++ :: else fi;
  less(x.lim)
}

inline tick() {
  printf("---- tick\n");
  if :: oExp == 1 -> setFree() :: else less(oExp) fi;
  if :: rKeep == 1 && dead < rTok -> dead = rTok :: else fi;
  less(rKeep);
  if :: rTtl == 1 -> rTok = 0; behind = false :: else fi;
  less(rTtl);
  if :: lTtl == 1 -> lTok = 0 :: else fi;
  less(lTtl); less(owed);
  i = 0;
  do
  :: i < CLIENTS ->
     ages(c[i]); less(dl[i]); less(lim[i]);
#ifdef URGENT
     due[i] = (st[i] == PARKED);
     if :: WAITS(i) && !frozen[i] -> waited[i]++; assert(waited[i] <= BOUND) :: else fi;
#endif
     i++
  :: else -> break
  od;
  ages(kept[0]);
#if COPIES > 1
  ages(kept[1]);
#endif
  i = 0
}

/* A take that is stale changes nothing. */
#define IS_SPENT(x) ((x.kind == TRY || x.kind == QUEUE) && x.age > REPLY)

/* The smallest token above `low` becomes low + 1; `low` counts on until there is none. */
inline least(v) { if :: v > n_ && v < cap -> cap = v :: else fi }
inline becomes(v) { if :: v == cap -> v = n_ :: else fi }
#define EACH(what) \
  what(top); what(oTok); what(rTok); what(lTok); what(best); what(dead); \
  i = 0; \
  do \
  :: i < CLIENTS -> \
     what(seen[i]); what(known[i]); what(named[i]); what(run_[i]); what(bar[i]); what(jBar[i]); what(jSeen[i]); what(came[i]); what(jCame[i]); \
     what(c[i].seen); what(c[i].tok); what(c[i].rtok); i++ \
  :: else -> break \
  od; \
  i = 0; \
  do :: i < COPIES -> what(kept[i].seen); what(kept[i].tok); i++ :: else -> break od; \
  i = 0

inline tidy() {
  i = 0;
  do :: i < COPIES -> if :: IS_SPENT(kept[i]) -> clear(kept[i]) :: else fi; i++ :: else -> break od;
  i = 0;
  do
  :: i < CLIENTS ->
     if :: st[i] == DEAD && c[i].ran -> clear(c[i]) :: else fi;
#ifdef URGENT
     if :: !WAITS(i) -> waited[i] = 0 :: else fi;
     if :: st[i] != PARKED -> due[i] = false :: else fi;
#endif
     i++
  :: else -> break
  od;
#ifdef CAN_FORCE
  if :: revoked != 0 && h[CLIENT(revoked)] != revoked -> revoked = 0 :: else fi;
#endif
  n_ = 0;
  do
  :: true ->
     cap = 255;
     EACH(least);
     if :: cap == 255 -> break :: else fi;
     n_++;
     if :: n_ != cap -> EACH(becomes) :: else fi
  od;
  n_ = 0; cap = 0
}
