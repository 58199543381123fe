/* A resource and its places: src/core/resource.ts and place.ts, with the
 * deadline of src/core/lease/hold.ts. `t` is the resource, `k` its client. */

#ifdef STAYS
#define EXPLICIT(t) false
#else
#define EXPLICIT(t) ((t) == 0)   /* an explicit lease; the others have the watchdog */
#endif
#define WAITS(t) (st[t] == ASKING || st[t] == SUBSCRIBING || st[t] == PARKED || st[t] == RETRYING || st[t] == CLAIMING || st[t] == YIELDING)
#define ALIVE(k) (st[FIRST(k)] != DEAD)
#ifdef FAIR
#define FIRST(k) ((k) == 0 -> 0 : (k) + 1)
#else
#define FIRST(k) (k)
#endif
#define ROOM (to[k].n <= K - 3)
#ifdef PLAIN
#define MAY_FAIL(k) ((k) == 0)
#else
#define MAY_FAIL(k) true
#endif
#define FAULT (MAY_FAIL(k) && faults > 0 && !calm && ALIVE(k))
#define MAY_READ (to[k].ran > 0 && !frozen[k])
/* Has this client nothing but a place in the queue, and does Redis know that it is subscribed? */
#define AT_REST(k) (sub[k] && st[FIRST(k)] == PARKED && to[k].n == 0 && heard[k].n == 0 && due[FIRST(k)] > 0 && !busy[FIRST(k)] && (wordTtl[k] == 0 || word[k]))
/* Grants are heard, or will not be for now. */
#ifdef UNHEARD
#define MAY_QUEUE(k) true
#define UNHEARD_ON (st[t] == SUBSCRIBING || HUNG(k))
#else
#define UNHEARD_ON HUNG(k)
#define MAY_QUEUE(k) (SUBSCRIBED(k) || HUNG(k))
#endif
/* A place whose grants are not heard looks as often as the first one: it has to find its grant
 * within the window. */
#ifdef FLAW_UNHEARD_LOOKS_LATE
#define LOOKS_SELDOM(t) IS_FAR(t)
#else
#define LOOKS_SELDOM(t) (IS_FAR(t) && SUBSCRIBED(CLIENT(t)))
#endif
#define PERIOD(t) (LOOKS_SELDOM(t) -> FAR_PERIOD : RECHECK)
#if defined(FLAW_NO_RECHECK)
#define IS_DUE(t) false
#elif defined(CALM)
#define IS_DUE(t) (!calm || due[t] == 0)
#elif defined(PROMPT)
#define IS_DUE(t) (due[t] == 0)
#else
#define IS_DUE(t) true
#endif

hidden byte then, fresh, used, rem, enough;
hidden byte unheard;
#define WANTED(t) (!nobody[t] || HASTY(t))
#define NOTHING 0
#define SEEK 1
#define FOUND 2

#ifdef FAIR
/* Of several parked places of one client only the first one looks, and keeps the places of all. */
#define isFirst(t) ((t) > 1 || st[1 - (t)] != PARKED || first == (t))
byte first;
#else
#define isFirst(t) true
#endif
#ifdef FLAW_AGAIN_EARLY
#define AGAIN_STATE(t) (st[t] == PARKED || st[t] == ASKING)
#else
#define AGAIN_STATE(t) (st[t] == PARKED)
#endif

inline mark(id) { if :: id != 0 && QUEUE_OF(id) == t -> used = used | (1 << ((id) & 7)) :: else fi }

/* R1: an id that nothing refers to any more. */
inline newHold() {
#ifdef FLAW_HOLD_REUSED
  fresh = t * 8 + 1
#else
  used = 1;
  mark(own); mark(h[t]); mark(revoked); mark(copied);
#ifdef TOKENS
  mark(released[t]);
#endif
  x = 0; do :: x < qn -> mark(q[x]); x++ :: else -> break od;
  x = 0; do :: x < to[k].n -> mark(to[k].c[x].hold); mark(to[k].c[x].other); x++ :: else -> break od;
  x = 0; do :: x < heard[k].n -> mark(heard[k].m[x].hold); x++ :: else -> break od;
  mark(kept.hold); mark(kept.other);
#ifdef CAN_REPEAT
  mark(late.hold); mark(late.other);
#endif
  fresh = 1;
  do :: fresh < 8 && (used & (1 << fresh)) -> fresh++ :: else -> break od;
  assert(fresh < 8);
  fresh = t * 8 + fresh
#endif
}

inline fresh_(state) {
  disown();
  clearFar();
  h[t] = fresh; st[t] = state; lag[t] = UNKNOWN; sage[t] = 0; dl[t] = 0; passes[t] = 0; token[t] = 0; busy[t] = false; endStay()
}

/* The caller that would not wait has its answer. */
inline notHasty() {
#if TRIES > 0
  hasty[t] = 0; wasHeld[t] = false
#else
  skip
#endif
}

inline clearFar() {
#ifdef FAR
  far[t] = false
#else
  skip
#endif
}

/* Nothing of ours is wanted in Redis. */
inline rest() {
  unpark(); disown(); clearFar();
  st[t] = IDLE; h[t] = 0; lag[t] = 0; sage[t] = 0; dl[t] = 0; passes[t] = 0; token[t] = 0; nobody[t] = false; busy[t] = false; notHasty(); endStay();
#ifdef TIMED
  due[t] = 0; waited[t] = 0; acked[t] = false
#endif
}

/* Its place in the queue was answered: when to look again. Race: "held" to a command that was sent
 * before the last acknowledgement is not the last word, whenever it is read: what was granted in
 * between was not heard. */
inline sleep(first_) {
#ifdef FAR
  far[t] = cf;
#endif
#ifdef TIMED
  due[t] = (LOOKS_SELDOM(t) && first_ -> FIRST_LOOK : PERIOD(t));
#ifdef CALM
  if :: !calm -> due[t] = 0 :: else fi;
#endif
  if :: acked[t] -> due[t] = 0 :: else fi;
  acked[t] = false;
#endif
  skip
}

inline park() {
  st[t] = PARKED; busy[t] = false;
#ifdef FAIR
  if :: t < 2 && st[1 - t] == PARKED -> first = 1 - t :: else fi;
#endif
  sleep(true)
}

inline unpark() {
#ifdef FAIR
  if
  :: t < 2 && st[t] == PARKED && st[1 - t] == PARKED ->
#ifdef TIMED
     if :: first == t -> due[1 - t] = RECHECK :: else fi;
#endif
     first = 0
  :: else
  fi
#else
  skip
#endif
}

/* Asks for the first caller with a new hold. */
inline start() {
  unpark();
  newHold();
  unheard = UNHEARD_ON;
  fresh_(ASKING);
  asks(LEASE_OF(fresh));
#ifdef TIMED
  due[t] = 0; acked[t] = false;
#endif
#ifdef FLAW_QUEUES_UNHEARD
  send(QUEUE, fresh, 0)
#else
  if
  :: nobody[t] || !(SUBSCRIBED(k) || unheard) -> send(TRY, fresh, 0)
  :: else -> send(QUEUE, fresh, 0)
  fi
#endif
#if TRIES > 0
  if :: HASTY(t) -> hasty[t] = BEFORE :: else fi
#endif
}

#if TRIES > 0
/* A caller comes that would not wait. It shares the acquire that is under way, and its answer, or
 * makes one. */
inline hurry() {
  hasty[t] = SINCE; wasHeld[t] = false;
  if
  :: st[t] == IDLE -> nobody[t] = true; start()
  :: st[t] == SUBSCRIBING || st[t] == RETRYING -> start()
  :: else
  fi
}
#endif

/* It is told that somebody else has the lock. Race: not by what was asked before it came, because
 * the lock may have been given back since. */
inline tellBusy() {
#if TRIES > 0
  if
#ifdef FLAW_BUSY_BEFORE_IT_CAME
  :: HASTY(t) ->
#else
  :: hasty[t] == BEFORE ->
#endif
     assert(wasHeld[t]); hasty[t] = 0; wasHeld[t] = false
  :: else
  fi
#else
  skip
#endif
}

/* Subscribing, or the pause after a failure. */
inline pause(state) {
  unpark(); disown(); clearFar();
  h[t] = 0; st[t] = state; lag[t] = 0; sage[t] = 0; dl[t] = 0; passes[t] = 0; token[t] = 0; busy[t] = false; endStay()
}

inline give() {
  unpark(); disown();
  printf("lock queue %d holds the lock by hold %d for %d\n", t, h[t], dl[t]);
  st[t] = HOLDING; busy[t] = false; lag[t] = 0; sage[t] = 0; nobody[t] = false; notHasty(); begins();
#ifdef TIMED
  waited[t] = 0; due[t] = 0; acked[t] = false;
#endif
  checkToken()
}

inline claim() { unpark(); disown(); st[t] = CLAIMING; busy[t] = false; lag[t] = 0; sage[t] = 0; asks(LEASE); send(CLAIM, h[t], 0) }

/* What follows from what was read: `then`, and how much must be left for handing it out without a claim. */
inline follow() {
  if
  :: then == FOUND && (!WANTED(t) || dl[t] == 0) -> send(LEAVE, h[t], 0); then = SEEK
  :: then == FOUND && WANTED(t) && dl[t] >= enough -> give()
  :: then == FOUND && WANTED(t) && dl[t] > 0 && dl[t] < enough -> claim()
  :: else
  fi;
  if
  :: then == SEEK && !WANTED(t) -> rest()
  :: then == SEEK && WANTED(t) -> start()
  :: else
  fi
}

/* R3: the outcome of (ck, ch, co) is unknown. `t` is not always the lock queue whose process runs this. */
inline failed() {
  t = QUEUE_OF(ch);
  if
  :: ck == LEAVE || ck == RELEASE -> send(LEAVE, ch, 0)
  :: ck == YIELD -> send(LEAVE, co, 0)
  :: ck == AGAIN && st[t] == PARKED && h[t] == ch -> busy[t] = false
  :: (ck == RENEW || ck == STAY) && IN_STAY(t) && h[t] == ch -> busy[t] = false; doubts()
  /* Race: the last copy of the acquire failed, and may have taken the lock for a hold that is over. */
  :: MAY_TAKE(ck) && h[t] != ch -> send(LEAVE, ch, 0)
  :: else
  fi;
  if
  :: ((ck == TRY || ck == QUEUE) && st[t] == ASKING || ck == YIELD && st[t] == YIELDING || (ck == CLAIM || ck == STAY) && st[t] == CLAIMING) && h[t] == ch ->
     send(LEAVE, ch, 0); notHasty();
     if :: nobody[t] -> rest() :: else -> pause(RETRYING) fi
  :: else
  fi
}

/* A duplicate of the subscriber is made when the self-test says that it is deaf, or not counted any more. */
inline selfTest() {
  if :: (deaf[k] || !sub[k]) && !HUNG(k) -> deaf[k] = false; subscribe() :: else fi
}

inline minus(from, less) { rem = (from > less -> from - less : 0) }

inline readReply() {
  ck = to[k].c[0].kind; ch = to[k].c[0].hold; co = to[k].c[0].other; ct = to[k].c[0].token;
  ca = to[k].c[0].age; cr = to[k].c[0].res; cd = to[k].c[0].d;
  cc = to[k].c[0].counted; cf = FAR_OF(to[k].c[0]);
#ifdef STAYS
  cw = to[k].c[0].waits;
#ifdef TOKENS
  cs = to[k].c[0].time;
#endif
#endif
  drop(0);
  printf("lock queue %d reads the answer to %d of hold %d: %d\n", t, ck, ch, cr);
  then = NOTHING; enough = (LEASE_OF(h[t]) + 1) / 2;
  if
  :: st[t] == DEAD
  :: st[t] != DEAD && cr == ERROR -> failed()
  :: else ->
     if
     :: (ck == TRY || ck == QUEUE) && st[t] == ASKING && h[t] == ch || ck == YIELD && st[t] == YIELDING && h[t] == ch ->
        if
        :: cr == OWNER || cr == MINE -> minus(cd, ca); dl[t] = rem; token[t] = ct; then = FOUND; learns(cr == OWNER)
        :: cr == HELD && ck == TRY ->
           tellBusy();
           if :: nobody[t] || HASTY(t) || SUBSCRIBED(k) -> then = SEEK :: else -> pause(SUBSCRIBING) fi
        /* Everybody is told, also a caller that came since: with a place in the queue the answer
         * would be the same. */
        :: cr == HELD && ck != TRY && nobody[t] -> notHasty(); send(LEAVE, ch, 0); then = SEEK
        :: cr == HELD && ck != TRY && !nobody[t] -> notHasty(); park(); lag[t] = cd; sage[t] = 0
        :: cr == STALE -> send(LEAVE, ch, 0); then = SEEK
        :: else -> then = SEEK
        fi
     :: ck == AGAIN && AGAIN_STATE(t) && h[t] == ch ->
        busy[t] = false;
        if
        :: cr == OWNER || cr == MINE ->
           if :: cr == MINE -> selfTest() :: else fi;
           minus(cd, ca); dl[t] = rem; token[t] = ct; then = FOUND; learns(cr == OWNER)
        :: cr == HELD -> lag[t] = cd; sage[t] = 0; sleep(false)
        :: cr == GONE -> checkPlace(); selfTest(); then = SEEK
        :: else ->
#ifdef TIMED
           due[t] = 0
#endif
           skip
        fi
     :: (ck == CLAIM || ck == STAY) && st[t] == CLAIMING && h[t] == ch ->
        if
        /* Answered after the deadline of the grant: the hold may own the lock by a later one. */
#ifdef FLAW_CLAIM_AFTER_DEADLINE
        :: cr == RENEWED ->
#else
        :: cr == RENEWED && dl[t] > 0 ->
#endif
           minus(cd, ca);
           if :: rem > dl[t] -> dl[t] = rem :: else fi;
           learns(ck == STAY);
           /* Its caller has gone, or the answer took longer than the lease. */
           if :: !WANTED(t) || dl[t] == 0 -> then = FOUND :: WANTED(t) && dl[t] > 0 && !IS_MET(t) -> unmet() :: else -> give() fi
        :: else ->
#ifndef FLAW_CLAIM_FORGOTTEN
           send(LEAVE, ch, 0);
#endif
           then = SEEK
        fi
     :: (ck == RENEW || ck == EXTEND || ck == STAY) && IN_STAY(t) && h[t] == ch ->
        if :: ck != EXTEND -> busy[t] = false :: else fi;
        if
#ifdef FLAW_LATE_RENEWAL_COUNTS
        :: cr == RENEWED ->
#else
        :: cr == RENEWED && dl[t] > 0 ->
#endif
           minus(cd, RENEWAL_AGE); if :: rem > dl[t] -> dl[t] = rem :: else fi; learns(ck == STAY)
        :: else -> lost()
        fi
     /* Race: a copy of the acquire, run behind the release, took the lock for a hold that is over:
      * it is left. */
     :: MAY_TAKE(ck) && (cr == OWNER || cr == MINE) && h[t] != ch -> send(LEAVE, ch, 0)
     :: else
     fi
  fi;
  follow()
}

inline readMessage() {
  ch = heard[k].m[0].hold; ca = heard[k].m[0].age; ct = heard[k].m[0].token;
#ifdef STAYS
  cw = heard[k].m[0].waits; cf = heard[k].m[0].recall;
#ifdef TOKENS
  cs = heard[k].m[0].time;
#endif
#endif
  unhear();
  printf("lock queue %d reads a message for hold %d\n", t, ch);
  then = NOTHING;
  enough = (EXPLICIT(t) -> LEASE : 1);
  if
  :: st[t] == DEAD
  :: st[t] != DEAD && IS_RECALL -> recalled()
  :: !IS_RECALL && (st[t] == ASKING || st[t] == PARKED || st[t] == YIELDING) && h[t] == ch ->
     /* deadline = t + (S_g - S) + TTL, never later than now + TTL; ca counts from BACK */
     if
     :: lag[t] == UNKNOWN -> minus(WINDOW, sage[t])
     :: else -> minus(WINDOW + BACK, ca + lag[t])
     fi;
     dl[t] = (rem > WINDOW -> WINDOW : rem);
     token[t] = ct;
     granted_();
     then = FOUND
  :: !IS_RECALL && (st[t] == CLAIMING || IN_STAY(t)) && h[t] == ch
  :: else -> send(LEAVE, ch, 0)
  fi;
  follow()
}

inline lookAgain() {
  busy[t] = true;
#ifdef TIMED
  acked[t] = false;
#endif
#ifdef FLAW_T_MOVED
  lag[t] = UNKNOWN; sage[t] = 0;
#endif
  send(AGAIN, h[t], 0)
}

/* The deadline has passed, or Redis says so. */
inline lost() {
  printf("lock queue %d has lost hold %d\n", t, h[t]);
  send(LEAVE, h[t], 0);
  rest()
}

inline unlock() { printf("lock queue %d unlocks hold %d\n", t, h[t]); send(RELEASE, h[t], 0); rest() }

inline pass() {
  todo[t]--; passes[t]++;
  printf("lock queue %d passes hold %d on\n", t, h[t]);
  if :: EXPLICIT(t) && dl[t] < LEASE -> claim() :: else -> give() fi
}

inline yield() {
  comes();
  x = h[t]; co = x;
  newHold();
  printf("lock queue %d yields hold %d for %d\n", t, co, fresh);
  send(YIELD, fresh, co);
  fresh_(YIELDING);
  asks(LEASE_OF(fresh))
}

/* The last caller leaves. */
inline abandon() {
  printf("lock queue %d: its last caller leaves\n", t);
  if
  :: st[t] == PARKED -> send(LEAVE, h[t], 0); rest()
  :: st[t] == SUBSCRIBING || st[t] == RETRYING -> rest()
  :: else -> nobody[t] = true
  fi
}
