/* What must be true, and the clock. */

byte ghost, ghostHold;         /* a hold that a late copy has made, and how long ago that was sent */

/* Nobody overtakes: what is granted without a place meets no live waiter. */
inline checkOrder() {
  x = 0;
  do :: x < qn -> assert(IS_DEAD(q[x], qt[x])); x++ :: else -> break od
}

/* At every grant. */
inline checkGrant(granted) {
#ifdef TOKENS
  x = 1;
  do
  :: x < HOLDS -> assert(!(SHARES(CLIENT(granted)) && x != granted && LIVES(x) && isReading[x]) || tok[x] == tok[granted]); x++
  :: else -> break
  od;
#endif
#ifdef SETS
  assert(!isSetYet || used <= SETS);
#endif
  skip
}

/* After every script: the books are the fields, and no grant is lost. */
inline checkServer() {
#ifndef CAN_DRIFT
  x = 1; sum = 0;
  do :: x < HOLDS -> sum = sum + u[x]; x++ :: else -> break od;
  assert(sum == used);
  sum = 0;
#endif
#if !defined(SETS)
  assert(used <= permits);
#endif
  assert(qn == 0 || IS_DEAD(q[0], qt[0]) || WANT(CLIENT(q[0])) > VACANT);
  x = 0
}

/* A caller comes in. */
inline checkEntry(t_) {
#ifdef TOKENS
  if
  :: IS_WRITER(k) && !isDown[t_] -> assert(token[t_] > best); best = token[t_]; bestWriter = token[t_]
  :: else ->
     assert(token[t_] > bestWriter || token[t_] == downToken);
#ifdef READ_WRITE
     assert(token[t_] >= best);
#endif
     best = MAX(best, token[t_])
  fi;
#endif
  skip
}
/* Readers come into a hold that others have: a crash blocks the others for no longer than their own
 * terms say. */
inline checkTerms(t_) {
#ifdef LONG
  assert(left[h[t_]] <= TOO_LONG)
#else
  skip
#endif
}
/* A reader comes in without asking: nobody has waited for longer than that is allowed. */
inline checkShare() {
  assert(qn == 0 || IS_DEAD(q[0], qt[0]) || qw[0] < SHARE)
}

#if PASSED > 0
/* It is passed on only while nobody of another process has waited for a tick; with no delay that is
 * since it was granted. */
inline checkPass() {
#if DELAYS == 0 && !defined(CAN_FREEZE)
  assert(qn == 0 || IS_DEAD(q[0], qt[0]) || CLIENT(q[0]) == k || qw[0] < SHARE);
#endif
#ifdef TOKENS
  assert(token[t] <= tok[h[t]] + (UP_TO(k) - 1 + PASSED));
#endif
  skip
}
#endif
/* What is granted has tokens that no caller has had. */
inline checkTokens(granted) {
#if PASSED > 0 && defined(TOKENS)
  assert(tok[granted] > best)
#else
  skip
#endif
}

#define NEEDS(t_) (IS_WRITER((t_)/2) && !isDown[t_] -> PERMITS : (SHARES((t_)/2) || isDown[t_] -> 1 : inside[t_] * EACH((t_)/2)))
#define BELIEVES(t_) (st[t_] == HAVE && inside[t_] > 0 && dl[t_] > 0)

/* After every step: those that believe to be inside are so in Redis, and together they use no more
 * than there is. */
inline check() {
  i = 0; sum = 0; w = NEVER;
  do
  :: i < SLOTS ->
     if
     :: BELIEVES(i) ->
        sum = sum + NEEDS(i);
        if :: NUMBER(i/2) < w -> w = NUMBER(i/2) :: else fi;
        assert(u[h[i]] >= NEEDS(i) && left[h[i]] >= dl[i]);
        /* Whose lease was lost is never inside again. */
        assert(!isLost[i])
     :: else
     fi;
     i++
  :: else -> break
  od;
  /* By the number of each of them. */
#ifdef SETS
  assert(sum <= PERMITS);
#else
  assert(sum <= w);
#endif
  /* A hold that its client has done with is on its way out: a command or a message that ends it is
   * under way. */
#ifndef CAN_KEEP
  i = 1;
  do
  :: i < HOLDS ->
     if
     :: LIVES(i) && !dead[CLIENT(i)] && !isCurrent(i) && age[i] == 0 ->
        x = 0; do :: x < to[CLIENT(i)].n && !(to[CLIENT(i)].c[x].hold == i && (to[CLIENT(i)].c[x].kind & 7) >= RELEASE && to[CLIENT(i)].c[x].arg == 0) && !IS_ENDED_BY(to[CLIENT(i)].c[x], i) -> x++ :: else -> break od;
        assert(x < to[CLIENT(i)].n)
     :: else
     fi;
     i++
  :: else -> break
  od;
#endif
  i = 0; sum = 0; x = 0; w = 0
}

/* Everything that would be done at once is done. */
#define READ(k) (dead[k] || frozen[k] || (to[k].ran == 0 && age[4*(k)+1] == 0 && age[4*(k)+2] == 0 && age[4*(k)+3] == 0 && age[4*(k)+4] == 0 && !ANY_RECALL(k) && !SEEKS(k) && !IS_TRYING(k)))
#ifdef LINGERS
#define ANY_RECALL(k) (recalls[4*(k)+1] || recalls[4*(k)+2] || recalls[4*(k)+3] || recalls[4*(k)+4])
#else
#define ANY_RECALL(k) false
#endif
#ifdef URGENT
#define SLOT_DONE(t) (dead[(t)/2] || frozen[(t)/2] || (!IS_FREE(t) && !(st[t] == PARKED && !busy[t] && IS_DUE(t)) && !(st[t] == HAVE && dl[t] == 0) && !(st[t] == HAVE && inside[t] > 0 && (t)/2 != SITS)))
#else
#define SLOT_DONE(t) (dead[(t)/2] || frozen[(t)/2] || !IS_FREE(t) && !(st[t] == HAVE && dl[t] == 0))
#endif
#define CLIENT_DONE(k) (to[k].ran == to[k].n && READ(k) && SLOT_DONE(2*(k)) && SLOT_DONE(2*(k)+1))
#if CLIENTS > 2
#define QUIET (CLIENT_DONE(0) && CLIENT_DONE(1) && CLIENT_DONE(2))
#define NOBODY_INSIDE (!ALIVE_IN(0) && !ALIVE_IN(1) && !ALIVE_IN(2))
#else
#define QUIET (CLIENT_DONE(0) && CLIENT_DONE(1))
#define NOBODY_INSIDE (!ALIVE_IN(0) && !ALIVE_IN(1))
#endif
#define ALIVE_IN(k) (!dead[k] && (LIVES(4*(k)+1) || LIVES(4*(k)+2) || LIVES(4*(k)+3) || LIVES(4*(k)+4)))

#define LESS(v) if :: v > 0 -> v-- :: else fi

inline tick() {
  printf("---- tick\n");
  i = 1;
  do
  :: i < HOLDS ->
     LESS(left[i]);
     if :: age[i] > 0 && age[i] <= WINDOW -> age[i]++ :: else fi;
     i++
  :: else -> break
  od;
  if :: next > 0 && next != NEVER -> next-- :: else fi;
  if :: permits > 0 && keyTtl > 0 && keyTtl != NEVER -> keyTtl-- :: else fi;
#ifdef CAN_DRIFT
  if :: permits > 0 && scanned < SCAN -> scanned++ :: else fi;
#endif
  i = 0;
  do :: i < qn -> LESS(qt[i]); if :: qw[i] < SHARE -> qw[i]++ :: else fi; i++ :: else -> break od;
  i = 0;
  do
  :: i < CLIENTS ->
     x = 0;
     do
     :: x < to[i].n ->
        if :: to[i].c[x].age < AGE_MAX && (to[i].c[x].kind & 7) < RELEASE && (to[i].c[x].res == 0 || to[i].c[x].res == OWNER || to[i].c[x].res == MINE || to[i].c[x].res == RENEWED) -> to[i].c[x].age++ :: else fi;
        x++
     :: else -> break
     od;
     if
     :: waiting[i] > 0 && !dead[i] && !frozen[i] ->
#ifdef URGENT
        /* Bounded waiting. */
        assert(waited[i] < BOUND);
        waited[i]++
#else
        skip
#endif
     :: else
     fi;
     i++
  :: else -> break
  od;
  x = 0;
  do :: x < COPIES -> if :: kept[x].kind != 0 && kept[x].age < AGE_MAX -> kept[x].age++ :: else fi; x++ :: else -> break od;
  if
  :: ghost != 0 ->
     /* A late copy has a hold no longer than its caller may have thought. Another one may raise it. */
     if :: !LIVES(ghostHold) -> ghost = 0; ghostHold = 0 :: else -> ghost++; assert(COPIES > 1 || ghost <= REPLY + LEASE) fi
  :: else
  fi;
  i = 0;
  do
  :: i < SLOTS ->
     if :: dl[i] == 1 -> isLost[i] = true :: else fi;
     LESS(dl[i]); GROWS_OLD(i);
#ifdef URGENT
     LESS(due[i]);
#endif
#ifdef FLAW_SHARES_FOR_EVER
     skip;
#else
     LESS(open[i]);
#endif
     if :: st[i] != FREE && lag[i] == UNKNOWN && sage[i] < WINDOW -> sage[i]++ :: else fi;
#ifdef LONG
     LESS(asked[i]);
#endif
     i++
  :: else -> break
  od;
  i = 0; x = 0
}
