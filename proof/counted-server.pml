/* Redis, for counted resources: one inline for each script. Times are what is left of them, in ticks. */

/* The hash: a field for each hold, and the books. */
byte u[HOLDS], left[HOLDS];    /* units, and until its end; u > 0 and left == 0: over, and no scan has found it yet */
byte used, permits;            /* the books: units in use, of how many; permits == 0: there is no hash */
byte next = NEVER;             /* until the earliest end, or sooner: the next scan */
byte keyTtl;                   /* of the hash; NEVER: it does not end */
byte scanned;                  /* ticks since the last scan */
bool isSet;                    /* the number comes from setPermits */
#ifdef TOKENS
byte tok[HOLDS], phase, last;  /* a hold's token, that of the present readers, and the clock */
bool isReading[HOLDS];
#endif
/* The queue: holds in order, until when each stands, and for the checks how long it has waited. */
byte qn, q[QMAX], qt[QMAX], qw[QMAX];
/* Grants on their way: 0, or 1 + their age. */
byte age[HOLDS], units[HOLDS];
byte behind[HOLDS];            /* "somebody waits" in the message: 0, 1; 2: its script has not ended yet */
#ifdef TOKENS
byte told[HOLDS];
#endif
#ifdef LINGERS
bool isTold[HOLDS];                   /* its client is told of those that wait */
#define PLAIN_RECALL 1
#define ASKING_RECALL 2               /* of a writer that does not wait */
byte recalls[HOLDS];                  /* such a message is on its way, or none: 0 */
#endif
bool noMemory, noQueue;            /* what needs memory is refused; the queue's key holds something else */

hidden byte i, j, x, f, w, res, d, got, sum, kk, front;
hidden byte me, goes, isNew, reaped, stop, isDead, wrote, waits, scans;

#define LIVES(id) (u[id] > 0 && left[id] > 0)
#define VACANT (permits > used -> permits - used : 0)
#define MIN(a, b) ((a) < (b) -> (a) : (b))
#define MAX(a, b) ((a) > (b) -> (a) : (b))

#ifdef FLAW_NO_NOT_AFTER
#define STALE_AT(sent) false
#else
#define STALE_AT(sent) ((sent) > REPLY)
#endif
#ifdef FLAW_JOIN_IS_ACQUIRE
#define ASKS 0
#define MAKES(kind_) (kind_ == JOIN)
#else
#define ASKS JOIN
#define MAKES(kind_) false
#endif
#ifdef FLAW_JOIN_TAKES_PLACE
#define TAKES_PLACE true
#else
#define TAKES_PLACE false
#endif

/* Takes out what is over, and counts the books anew. */
inline scan() {
  x = 1; sum = 0; reaped = false; next = NEVER;
  do
  :: x < HOLDS ->
     if
     :: u[x] > 0 && left[x] == 0 ->
#ifdef FLAW_NO_RECOUNT
        used = used - u[x];
#endif
        endHold(x); reaped = true; wrote = true
     :: else
     fi;
     sum = sum + u[x];
     if :: u[x] > 0 && left[x] < next -> next = left[x] :: else fi;
     x++
  :: else -> break
  od;
#ifndef FLAW_NO_RECOUNT
  if :: used != sum -> reaped = true :: else fi;
  used = sum;
#endif
  scanned = 0;
  assert(used == sum);
  sum = 0
}

/* Something may be over; or the last scan is too long ago. */
inline reap() {
  reaped = false;
  if :: permits > 0 && (next == 0 || scanned >= SCAN) -> scan() :: else fi
}

inline endHold(over) {
  u[over] = 0; left[over] = 0;
#ifdef LINGERS
  isTold[over] = false;
#endif
#ifdef TOKENS
  tok[over] = 0; isReading[over] = false
#endif
}

inline find(one) { f = 0; do :: f < qn && q[f] != one -> f++ :: else -> break od }

inline remove(place) {
  j = place;
  do :: j + 1 < qn -> q[j] = q[j + 1]; qt[j] = qt[j + 1]; qw[j] = qw[j + 1]; j++ :: else -> break od;
  qn--; q[qn] = 0; qt[qn] = 0; qw[qn] = 0
}

inline enqueue(last) { assert(qn < QMAX); q[qn] = last; qt[qn] = ENTRY_TTL; qw[qn] = 0; qn++ }

/* Of the hash, to so long at least: a TTL is only ever raised. */
inline raiseKey(till) {
#ifdef KEY_ENDS
  if
#ifdef FLAW_KEY_SHORTENED
  :: keyTtl != NEVER -> keyTtl = till
#else
  :: keyTtl < till -> keyTtl = till
#endif
  :: else
  fi
#else
  skip
#endif
}

/* A reader takes the token of the readers that are there; the first one makes it. */
inline own(taker, till_) {
  assert(u[taker] == 0);
  kk = CLIENT(taker);
  u[taker] = MIN(UP_TO(kk), VACANT); left[taker] = till_; got = u[taker];
#ifdef TOKENS
  isReading[taker] = SHARES(kk);
  if
#ifdef FLAW_READERS_OWN_TOKENS
  :: false
#elif defined(FLAW_PHASE_NEVER_ENDS)
  :: SHARES(kk) && phase != 0
#else
  :: SHARES(kk) && used > 0 && phase != 0
#endif
     -> tok[taker] = phase
  :: else ->
     tok[taker] = last + 1;
#ifdef FLAW_TOKENS_NOT_RESERVED
     last = tok[taker];
#else
     last = tok[taker] + (IS_WRITER(kk) -> PASSES : RESERVES(kk));
#endif
     if :: SHARES(kk) -> phase = tok[taker] :: else fi
  fi;
#endif
  used = used + u[taker];
#ifndef FLAW_NEXT_LATE
  if :: till_ < next -> next = till_ :: else fi;
#else
  if :: next == NEVER -> next = till_ :: else fi;
#endif
#if defined(FLAW_KEY_SHORTENED) || defined(FLAW_BOOKS_END)
  raiseKey(till_);
#else
  raiseKey(till_ + LEASE);
#endif
  checkGrant(taker); checkTokens(taker)
}

/* Is the entry dead? Its client is gone, its time is over, or it was asked for under another number
 * of permits. */
#ifdef FLAW_OLD_NUMBER
#define IS_DEAD(id, ttl) ((dead[CLIENT(id)] && !counted[CLIENT(id)]) || (ttl) == 0 || WANT(CLIENT(id)) > permits)
#else
#define IS_DEAD(id, ttl) ((dead[CLIENT(id)] && !counted[CLIENT(id)]) || (ttl) == 0 || WANT(CLIENT(id)) > permits || (!isSet && NUMBER(CLIENT(id)) != permits))
#endif

/* The run at the head. It goes on behind the caller's own place, `me`. A dead head goes also where
 * it would not fit: it would block those that do. */
inline advance() {
  stop = false;
  do
  :: qn == 0 || stop -> break
  :: else ->
     front = q[0];
     isDead = (front != me && IS_DEAD(front, qt[0]));
     if
#ifdef FLAW_DEAD_HEAD_BLOCKS
     :: isDead && WANT(CLIENT(front)) > VACANT -> stop = true
     :: isDead && WANT(CLIENT(front)) <= VACANT -> remove(0); wrote = true
#else
     :: isDead -> remove(0); wrote = true
#endif
     :: !isDead && WANT(CLIENT(front)) > VACANT -> stop = true
     :: !isDead && WANT(CLIENT(front)) <= VACANT ->
        remove(0); wrote = true;
        d = (front == me -> LEASE : WINDOW);
        own(front, d);
        if
        :: front == me ->
           res = OWNER; w = got;
#ifdef FLAW_RUN_ENDS_AT_ME
           stop = true;
#endif
           skip
        :: else -> d = 0; publish(front)
        fi;
#ifdef FLAW_ONE_AT_A_TIME
        stop = true;
#endif
        skip
     fi
  od;
  /* A dead head would block those that fit behind it. */
  assert(qn == 0 || q[0] == me || !IS_DEAD(q[0], qt[0]))
}

/* All messages go out behind all writes. Each says whether somebody waits behind the run. */
inline publish(to_) {
  if
  :: dead[CLIENT(to_)] -> skip
  :: else ->
     age[to_] = 1; units[to_] = u[to_];
#ifdef TOKENS
     told[to_] = tok[to_];
#endif
     behind[to_] = 2
  fi
}
inline tellWaits() {
  x = 1;
  do :: x < HOLDS -> if :: behind[x] == 2 -> behind[x] = (qn > 0) :: else fi; x++ :: else -> break od
}

inline raise(which, long) {
#ifdef FLAW_ONE_END
  x = 1; do :: x < HOLDS -> if :: u[x] > 0 && left[x] < long -> left[x] = long :: else fi; x++ :: else -> break od;
#else
  if :: left[which] < long -> left[which] = long :: else fi;
#endif
#ifndef FLAW_KEY_SHORTENED
  raiseKey(long + LEASE)
#endif
}

#define REFUSES (noMemory && !wrote)
#define NOT_FOR(id) (WANT(CLIENT(id)) > permits || (!isSet && NUMBER(CLIENT(id)) != permits))

/* It is owned already. What readers ask of a hold that they share raises it only where nobody waits. */
inline mine(held, full_, joins) {
  res = MINE; w = u[held];
#ifdef FLAW_MINE_NOT_RAISED
  d = full_
#else
  if :: joins && qn > 0 -> skip :: else -> raise(held, full_) fi;
  d = left[held]
#endif
}

/* It ends, or shrinks: it never grows. A writer that becomes a reader leaves the token that its
 * client has now to the readers beside it; a late copy says an older one than that of the hold that
 * another late copy has made. */
inline shrink(less, keeps, with) {
  used = used - u[less] + keeps;
  if
  :: keeps == 0 -> endHold(less)
  :: else ->
     u[less] = keeps;
#if defined(TOKENS) && defined(READ_WRITE)
#ifdef FLAW_DOWNGRADE_OLD_TOKEN
     phase = tok[less]; isReading[less] = true
#else
#ifndef FLAW_DOWNGRADE_COPY_COUNTS
     with = MAX(with, tok[less]);
#endif
     phase = with; tok[less] = with; isReading[less] = true
#endif
#endif
  fi
}

/* Behind advance, for a hold that asks: what is left is free, or it queues. */
inline takeOrQueue(id, ttl) {
  find(id);
  if
  :: res == OWNER -> skip
#ifdef FLAW_READERS_OVERTAKE
  :: res != OWNER && f == qn && WANT(CLIENT(id)) <= VACANT && !(REFUSES) ->
#else
  :: res != OWNER && qn == 0 && WANT(CLIENT(id)) <= VACANT && !(REFUSES) ->
#endif
     checkOrder();
     own(id, ttl); res = OWNER; d = ttl; w = got;
#ifdef LINGERS
     /* A grant by message never says so. */
     isTold[id] = SHARES(CLIENT(id))
#endif
  :: res != OWNER && f < qn ->
     res = HELD
  :: else ->
     if
     :: REFUSES -> res = ERROR
     :: else ->
        enqueue(id); res = HELD
     fi
  fi
}

/* Somebody waits: all that may have nobody inside are told, in one script; where others stand
 * before it, by a look or by a writer that does not wait only. */
#define RECALLS(id, kind_) (TRIES >= CLIENTS || kind_ == AGAIN || q[0] == id || CLIENT(id) == TRIES)
#define RECALL_OF(id, x) (CLIENT(id) == TRIES && recalls[x] != PLAIN_RECALL -> ASKING_RECALL : PLAIN_RECALL)
inline recallAll(id, kind_) {
#if defined(LINGERS) && !defined(FLAW_NO_RECALL)
  x = 1;
  do
  :: x < HOLDS -> if :: LIVES(x) && isTold[x] && !dead[CLIENT(x)] && CLIENT(x) != DEAF && RECALLS(id, kind_) -> recalls[x] = RECALL_OF(id, x) :: else fi; x++
  :: else -> break
  od
#else
  skip
#endif
}

/* A re-check keeps all places of its client. */
inline keepPlaces(id) {
  x = 0; do :: x < qn -> if :: CLIENT(q[x]) == CLIENT(id) -> qt[x] = ENTRY_TTL :: else fi; x++ :: else -> break od
}

/* One key only, so it looks at no queue and touches no books: `next` may come too early, never too late. */
inline renew(id, ttl) {
  if
#ifdef FLAW_HSET_FIRST
  :: LIVES(id) && noMemory -> res = ERROR
#endif
#ifdef FLAW_REVIVED
  :: u[id] > 0 ->
#else
  :: LIVES(id) ->
#endif
     assert(left[id] > 0);   /* what is over is never revived */
     raise(id, ttl); d = left[id]; res = RENEWED
  :: else -> res = GONE
  fi
}

/* For a flaw: the books are added to and subtracted from. */
inline reapWrong() {
  x = 1;
  do :: x < HOLDS -> if :: u[x] > 0 && left[x] == 0 -> used = (used > u[x] -> used - u[x] : 0); endHold(x) :: else fi; x++ :: else -> break od
}

inline setPermits() {
#ifdef SETS
  res = 0; d = 0; w = 0; wrote = true;
  reap();
  permits = SETS; isSet = true;
#ifdef FLAW_SET_FADES
  raiseKey(LEASE);
#else
  keyTtl = NEVER;
#endif
  me = 0; advance();
  tellWaits();
  checkServer()
#else
  skip
#endif
}

/* The hash is gone: by its TTL, or by somebody's hand. */
inline vanish() {
  printf("redis: the hash is gone\n");
  x = 1; do :: x < HOLDS -> endHold(x); x++ :: else -> break od;
  used = 0; permits = 0; next = NEVER; isSet = false; scanned = 0; keyTtl = 0;
#ifdef TOKENS
  phase = 0
#endif
}

/* Every script but renew, in its order: what is over is taken out; what it asks for itself; the run
 * at the head; what is left for it. What takes out something gives it on, in every branch. */
inline run_(kind_, id, arg_, sent, told_, ttl) {
  res = 0; d = 0; w = 0; got = 0; wrote = false; waits = false; reaped = false; me = 0; isNew = false;
  if
  /* All keys are read before the first write, so one that holds something else costs nothing. */
  :: noQueue && kind_ != RENEW ->
#ifdef FLAW_READS_LATE
     if :: kind_ == RELEASE && arg_ == 0 -> endHold(id) :: else fi;
#endif
     res = ERROR
  :: !noQueue && kind_ == QUEUE && STALE_AT(sent) -> res = STALE
  :: kind_ == RENEW -> renew(id, ttl)
  :: else ->
#ifdef FLAW_RELEASE_BEFORE_REAP
     if :: kind_ == RELEASE && u[id] > arg_ && left[id] == 0 -> used = used - u[id]; reapWrong() :: else fi;
#endif
     reap();
     goes = reaped;
#ifdef FLAW_REAP_TELLS_NOBODY
     goes = false;
#endif
     find(id);
     if
     :: (kind_ <= JOIN || kind_ == YIELD) && LIVES(id) -> mine(id, ttl, kind_ == JOIN)
     /* A copy that comes late finds that the old hold has ended, and queues nothing. */
#ifdef FLAW_YIELD_QUEUES
     :: false
#else
     :: kind_ == YIELD && !LIVES(id) && f == qn && !LIVES(arg_) -> goes = true; res = DONE
#endif
     :: kind_ == AGAIN && !LIVES(id) && f == qn -> res = GONE
     /* Also when it is queued: by a late copy of what once made it. */
     :: kind_ == ASKS && !LIVES(id) && (f == qn || !TAKES_PLACE) -> res = GONE
     :: (kind_ == QUEUE || MAKES(kind_)) && !LIVES(id) && permits > 0 && NOT_FOR(id) -> res = DIFFER
     :: kind_ == AGAIN && !LIVES(id) && f < qn && permits > 0 && NOT_FOR(id) -> remove(f); goes = true; res = GONE
     :: kind_ == RELEASE ->
        res = DONE;
#ifdef FLAW_COPY_GROWS
        if :: LIVES(id) && u[id] != arg_ -> shrink(id, arg_, told_) :: else fi;
#else
        if :: LIVES(id) && u[id] > arg_ -> shrink(id, arg_, told_) :: else fi;
#endif
        wrote = true; goes = true
     :: kind_ == LEAVE ->
        res = DONE;
        if :: f < qn -> remove(f) :: else fi;
        if :: LIVES(id) -> used = used - u[id]; endHold(id) :: else fi;
        wrote = true;
#ifndef FLAW_LEAVE_TELLS_NOBODY
        goes = true
#endif
     :: else ->
        /* It queues before anybody is granted, so nothing but the queue says which hold is next. */
        if
        :: kind_ == YIELD && f == qn ->
           if :: LIVES(arg_) -> used = used - u[arg_]; endHold(arg_) :: else fi;
           wrote = true;
           enqueue(id)
        :: else
        fi;
        if :: permits == 0 -> permits = NUMBER(CLIENT(id)); isNew = true :: else fi;
        me = id;
#ifdef FLAW_READERS_OVERTAKE
        goes = !(f == qn && WANT(CLIENT(id)) <= VACANT)
#else
        goes = true
#endif
     fi;
     if :: goes -> advance() :: else fi;
     /* The last of those that were told the number was over. */
     if
     :: res == DIFFER && used == 0 && qn == 0 && !isSet && WANT(CLIENT(id)) <= NUMBER(CLIENT(id)) ->
        permits = NUMBER(CLIENT(id)); isNew = true; me = id; res = 0
     :: else
     fi;
     if
     :: me != 0 ->
        takeOrQueue(id, ttl);
        if
        :: res == HELD ->
           d = sent;
           recallAll(id, kind_);
           if :: kind_ == AGAIN -> keepPlaces(id) :: else fi;
#ifndef FLAW_BOOKS_END
           raiseKey(ENTRY_TTL + 1)
#endif
        /* Refused: nothing was written. */
        :: res == ERROR && isNew -> permits = 0
        :: else
        fi
     :: else
     fi
  fi;
  waits = (qn > 0);
  tellWaits();
  if :: kind_ != RENEW -> checkServer() :: else fi;
  if :: kind_ != RENEW && res != ERROR && permits > 0 && used == 0 && qn == 0 && !isSet -> vanish() :: else fi
}
