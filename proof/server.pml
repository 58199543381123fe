/* Redis: one inline for each script of lua/handoff/. A script is atomic: every inline runs inside a d_step.
 * Times are what is left of them, in ticks. A lock with exp == 0 does not exist. */

byte own, exp;                 /* lock: the owner's hold, and its TTL */
byte qn, q[QMAX];              /* queue: the holds in the order of their tickets */
byte qt[QMAX];                 /* their tickets: what is left of ticket + ENTRY_TTL */
bool qc[QMAX];                 /* the digit of the member: does the count of receivers prove anything? */
byte wordTtl[CLIENTS];         /* clients: what is left of the deadline that the last re-check has written; 0: none */
bool word[CLIENTS];            /* its digit: was the client heard when that was sent? */
#ifdef CAN_STEP
byte qr[QMAX];                 /* for the check: the order in which they came */
#endif
#ifdef CAN_FULL
bool noMemory;                     /* what needs memory is refused, unless the script has written already */
#define REFUSES noMemory
#else
#define REFUSES false
#endif
#ifdef TOKENS
byte tok, since, last;         /* the owner's token, the start of its chain; the clock. The worst case for tokens is a server
                                  time that is behind `last` all the time, and has fewer digits than a token */
#define FLOOR 10
#define SHORT_TIME 9
byte released[QUEUES];         /* for the check: the hold that ended by its own release, while the chain is unbroken */
#endif

bool sub[CLIENTS];             /* counted as a receiver of its channel */
bool deaf[CLIENTS];            /* half-open: what is published is lost */
#ifdef CAN_APART
bool apart[CLIENTS];           /* not counted, and its client does not know: the server has dropped the connection (deaf), or
                                  it is one to a replica, where what is published is heard */
#define SUBSCRIBED(k) (sub[k] || apart[k])
#else
#define SUBSCRIBED(k) sub[k]
#endif

typedef Message {              /* a grant; age: by the server's clock, + BACK */
  byte hold, age, token
#ifdef STAYS
  ; bool recall, waits         /* a recall of that hold; a grant: does somebody else wait? */
#ifdef TOKENS
  ; byte time                  /* the server's time at the grant */
#endif
#endif
};
typedef Channel { Message m[MMAX]; byte n };
Channel heard[CLIENTS];        /* published, and not read yet */

hidden byte i, j, x, f, w, granted, front, rank, res, d, farOff;
hidden byte wasFree, stands, proves;

#ifdef FLAW_OLD_WORD_COUNTS
#define KEEPS_WORDS true
#else
#define KEEPS_WORDS false
#endif
#define CLIENT_OF(i) CLIENT(QUEUE_OF(q[i]))

/* An entry may be granted until the later one of two times: ticket + ENTRY_TTL, and what its client
 * has written. */
#define LIVES(i) (qt[i] > 0 || wordTtl[CLIENT_OF(i)] > 0)

/* Is an entry dead when nobody is counted? What its client has said last counts before what the
 * entry says. */
#if defined(FLAW_UNHEARD_SKIPPED)
#define COUNTS(i) (qc[i] || (wordTtl[CLIENT_OF(i)] > 0 && word[CLIENT_OF(i)]))
#elif defined(FLAW_UNCOUNTED_FOR_EVER)
#define COUNTS(i) (qc[i] && !(wordTtl[CLIENT_OF(i)] > 0 && !word[CLIENT_OF(i)]))
#else
#define COUNTS(i) (wordTtl[CLIENT_OF(i)] > 0 -> word[CLIENT_OF(i)] : qc[i])
#endif

/* States that nothing can tell apart are made one: a ticket's deadline that is not the later one,
 * and what a client has said that waits no more, unless it was not heard. */
inline tidy() {
  j = 0;
#ifndef CAN_STEP
  do :: j < qn -> if :: qt[j] <= wordTtl[CLIENT_OF(j)] -> qt[j] = 0 :: else fi; j++ :: else -> break od;
  j = 0;
#endif
  do
  :: j < CLIENTS ->
     if
     :: word[j] && wordTtl[j] <= ENTRY_TTL ->
        x = 0; do :: x < qn && CLIENT_OF(x) != j -> x++ :: else -> break od;
        if :: x == qn && !KEEPS_WORDS -> wordTtl[j] = 0; word[j] = false :: else fi
     :: else
     fi;
     j++
  :: else -> break
  od;
  j = 0
}

inline find(id) {
  f = 0;
  do :: f < qn && q[f] != id -> f++ :: else -> break od
}

/* ZADD NX names the whole member. */
#ifdef FLAW_MEMBER_CHANGES
inline findMember(id, counted) {
  f = 0;
  do :: f < qn && !(q[f] == id && qc[f] == counted) -> f++ :: else -> break od
}
#else
inline findMember(id, counted) { find(id) }
#endif

inline remove(at) {
  j = at;
#ifdef CAN_STEP
  rank = qr[at];
#endif
  do
  :: j + 1 < qn ->
     q[j] = q[j + 1]; qt[j] = qt[j + 1]; qc[j] = qc[j + 1];
#ifdef CAN_STEP
     qr[j] = qr[j + 1];
#endif
     j++
  :: else -> break
  od;
  qn--; q[qn] = 0; qt[qn] = 0; qc[qn] = false;
#ifdef CAN_STEP
  qr[qn] = 0;
  j = 0; do :: j < qn -> if :: qr[j] > rank -> qr[j]-- :: else fi; j++ :: else -> break od
#endif
}

/* A ticket is greater than all others in the queue: the time, or one more than the last. */
inline enqueue(id, counted) {
  assert(qn < QMAX);
  find(id);
  /* A hold stands in the queue once. */
  assert(f == qn);
  j = qn;
#ifdef FLAW_TICKET_BEHIND
  do
  :: j > 0 && qt[j - 1] > ENTRY_TTL -> q[j] = q[j - 1]; qt[j] = qt[j - 1]; qc[j] = qc[j - 1]; qr[j] = qr[j - 1]; j--
  :: else -> break
  od;
  qt[j] = ENTRY_TTL;
#else
  qt[j] = (j > 0 && qt[j - 1] > ENTRY_TTL -> qt[j - 1] : ENTRY_TTL);
#endif
  q[j] = id; qc[j] = counted;
#ifdef CAN_STEP
  qr[j] = qn;
#endif
  qn++;
#ifndef FLAW_OLD_WORD_COUNTS
  /* What its client has said before was true of a subscription that it does not have any more. The
   * deadline stands. */
  if :: !counted -> word[CLIENT(QUEUE_OF(id))] = false :: else fi
#endif
}

/* The chain of hand-overs is broken: what was released before may be told "taken". */
inline breakChain() {
#ifdef TOKENS
  j = 0; do :: j < QUEUES -> released[j] = 0; j++ :: else -> break od
#else
  skip
#endif
}

/* What is on its way to `hold` is about a former grant. */
inline outdate(id) {
#ifndef TOKENS
  j = CLIENT(QUEUE_OF(id)); x = 0;
  do :: x < heard[j].n -> if :: heard[j].m[x].hold == id -> heard[j].m[x].token = OLD :: else fi; x++ :: else -> break od;
  if :: h[QUEUE_OF(id)] == id && token[QUEUE_OF(id)] != 0 -> token[QUEUE_OF(id)] = OLD :: else fi
#else
  skip
#endif
}

/* shared.lua: own. `reserved`: how many tokens after its own one are the hold's too. `chain`: the
 * chain of hand-overs goes on. */
inline take(id, ttl, reserved, chain) {
  outdate(id);
  own = id; exp = ttl;
  taken(id);
#ifdef TOKENS
#if defined(STAYS)
  tok = (last + 1 > clk -> last + 1 : clk);
#elif defined(FLAW_TOKENS_AS_TEXT)
  tok = (last / 10 >= SHORT_TIME -> last + 1 : SHORT_TIME);
#else
  tok = (last < FLOOR -> FLOOR : last + 1);
#endif
  last = tok + RESERVES(reserved);
  if
  :: !(chain) -> breakChain();
#ifndef FLAW_ONE_RECEIPT
     since = tok
#endif
  :: else
  fi
#endif
}

inline free() {
  own = 0; exp = 0;
#ifdef STAYS
  told = 0;
#endif
#ifdef TOKENS
  tok = 0; since = 0; breakChain()
#endif
}

/* R2 */
inline raise(ttl) { if :: exp < ttl -> exp = ttl :: else fi }

inline publish(id) {
  j = CLIENT(QUEUE_OF(id));
  if
  :: SUBSCRIBED(j) && !deaf[j] ->
     assert(heard[j].n < MMAX);
     heard[j].m[heard[j].n].hold = id;
     heard[j].m[heard[j].n].age = BACK;
     heard[j].m[heard[j].n].token = TOKEN;
#ifdef STAYS
     heard[j].m[heard[j].n].recall = false; heard[j].m[heard[j].n].waits = GRANT_WAITS;
#ifdef TOKENS
     heard[j].m[heard[j].n].time = clk;
#endif
#endif
     heard[j].n++
  :: else
  fi
}

/* First come, first served: no live entry that came before it still stands. */
inline checkOrder() {
#ifdef CAN_STEP
  j = 0;
  do
  :: j < qn -> assert(qr[j] >= rank || !LIVES(j) || (COUNTS(j) && !sub[CLIENT_OF(j)])); j++
  :: else -> break
  od
#else
  skip
#endif
}

/* shared.lua: grantNext. `granted`: the hold that got the lock, `me` (then nothing was written for
 * it), or 0. */
inline grantNext(me, chain) {
  granted = 0;
  do
  :: qn == 0 -> break
  :: else ->
     front = q[0]; stands = LIVES(0); proves = COUNTS(0);
     remove(0);
     if
     :: front == me -> granted = me; checkOrder(); break
     :: front != me && stands ->
#ifdef FLAW_PUBLISH_THEN_SKIP
        take(front, WINDOW, PASSES, chain);
        publish(front);
        if :: sub[CLIENT(QUEUE_OF(front))] || !proves -> granted = front; break :: else fi
#else
        if
        :: sub[CLIENT(QUEUE_OF(front))] || !proves ->
           checkOrder();
#ifdef SILENCE
           assert(silent[CLIENT(QUEUE_OF(front))] < ENTRY_TTL);
#endif
           take(front, WINDOW, PASSES, chain); publish(front); granted = front; break
        :: else
        fi
#endif
     :: else
     fi
  od
}

/* shared.lua: handOver */
inline handOver(chain) {
  grantNext(0, chain);
  if :: granted == 0 -> free() :: else fi
}

/* The hold ends by its own command. */
inline receipt() {
#ifdef TOKENS
  released[QUEUE_OF(own)] = own;
#ifdef FLAW_ONE_RECEIPT
  since = tok;
#endif
#endif
  skip
}

/* shared.lua: ended */
inline whatBecame(token_) {
#ifdef TOKENS
#ifdef FLAW_ONE_RECEIPT
  res = (own == 0 -> GONE : (token_ == since -> RELEASED : TAKEN))
#else
  res = (own == 0 -> GONE : (since <= token_ && token_ < tok -> RELEASED : TAKEN))
#endif
#else
  res = (own == 0 -> GONE : TAKEN)
#endif
}

/* Both for an acquire and for a re-check. `d`: the TTL that is answered. */
inline mine() {
  res = MINE;
#ifdef FLAW_MINE_NOT_RAISED
  d = LEASE
#else
  raise(LEASE_OF(own)); d = exp; seen(own)
#endif
}

#ifdef FLAW_POP_FIRST
#define EXISTS true
#else
#define EXISTS (qn > 0)
#endif

/* acquire.lua, to try and to queue. `d`: for held, how long ago it was sent; for owner and mine,
 * the TTL that is answered. */
inline acquire(mode, id, counted, age_) {
  d = age_;
  if
  :: STALE_AT(age_) -> res = STALE
  :: !STALE_AT(age_) && own == id -> mine()
  :: else ->
     wasFree = (own == 0);
     granted = 0;
     if
     /* The first write is one that a full Redis refuses. */
     :: wasFree && !EXISTS && REFUSES -> res = ERROR
     :: wasFree && (EXISTS || !REFUSES) ->
        grantNext(id, false);
        if :: granted == 0 || granted == id -> take(id, LEASE_OF(id), RESERVED, false); tell(id, counted); res = OWNER; d = LEASE_OF(id) :: else -> res = HELD fi
     :: TAKES_OVER -> take(id, LEASE_OF(id), RESERVED, false); tell(id, counted); res = OWNER; d = LEASE_OF(id)
     :: else -> res = HELD
     fi;
     findMember(id, counted);
     if
     :: res == HELD && mode == QUEUE && f == qn && !wasFree && REFUSES -> res = ERROR
     :: res == HELD && mode == QUEUE && f == qn && (wasFree || !REFUSES) -> enqueue(id, counted)
     :: else
     fi;
     find(id); farOff = (f > 0);
     if :: mode == QUEUE && res == HELD && f == 0 -> sendRecall(id) :: else fi
  fi
}

/* recheck.lua: from its place in the queue. It says that its client still waits, whether that is
 * heard, and how long its places may be kept: for all places of the client. It queues nothing, so
 * it is never too late. */
inline recheck(id, counted, isFar_, age_) {
  d = age_;
  find(id);
  if
  :: own == id -> mine()
  :: own != id && f == qn -> res = GONE
  :: else ->
     granted = 0;
     wasFree = (own == 0);
     if :: wasFree -> grantNext(id, false) :: else fi;
     if
     :: wasFree && (granted == 0 || granted == id) -> take(id, LEASE_OF(id), PASSES, false); tell(id, counted); res = OWNER; d = LEASE_OF(id)
     :: else ->
        res = HELD;
        find(id); farOff = (f > 0);
#ifndef FLAW_NO_REMIND
        sendRecall(id);
#endif
        /* Removing what is past is the write that a full Redis does not refuse. */
        j = CLIENT(QUEUE_OF(id));
        wordTtl[j] = (isFar_ -> FAR_TTL : KEPT_FOR); word[j] = counted;
#ifdef FLAW_MEMBER_CHANGES
        qc[f] = counted
#endif
     fi
  fi
}

/* release.lua */
inline release(id, token_) {
  if
  :: own == id -> receipt(); handOver(true); res = RELEASED
  :: else -> whatBecame(token_)
  fi
}

/* yield.lua */
inline yield_(old_, new_, token_, age_, counted) {
  d = age_;
  find(new_);
  if
  :: own == new_ -> raise(LEASE_OF(new_)); d = exp; res = MINE; seen(new_)
  :: own != new_ && f < qn -> res = HELD
  :: own != new_ && f == qn && own != old_ -> whatBecame(token_)
#ifdef FLAW_YIELD_QUEUES_FIRST
  :: own != new_ && f == qn && own == old_ && REFUSES -> res = ERROR
#endif
  :: else ->
     /* ZREM of the new member is the write that a full Redis does not refuse. */
     receipt();
     enqueue(new_, counted);
     grantNext(new_, true);
     if
     :: granted == new_ -> take(new_, LEASE_OF(new_), PASSES, true); tell(new_, counted); res = OWNER; d = LEASE_OF(new_)
     :: else -> res = HELD; find(new_); farOff = (f > 0)
     fi
  fi
}

/* leave.lua */
inline leave(id) {
  find(id);
  if :: f < qn -> remove(f) :: else fi;
  if :: own == id -> handOver(true) :: else fi;
  res = LEFT
}

/* renew-stays.lua, and renew.lua. `d`: the TTL that is answered. */
inline renew(id, ttl) {
  if
  :: own == id ->
#ifdef FLAW_RENEW_SHORTENS
     exp = ttl;
#else
     raise(ttl);
#endif
     d = exp; res = RENEWED; confirmed(id)
  :: else -> d = 0; res = (own == 0 -> GONE : TAKEN)
  fi
}

/* force-release.lua; what it publishes only ends a lease sooner, and is left out. */
inline forceRelease() { revoked = own; handOver(false) }

inline run_(kind_, hold_, other_, token_, age_, counted_, isFar) {
  d = 0; res = 0; farOff = 0;
  if
  :: kind_ == TRY || kind_ == QUEUE -> acquire(kind_, hold_, counted_, age_)
#ifdef FLAW_AGAIN_QUEUES
  :: kind_ == AGAIN -> acquire(QUEUE, hold_, counted_, age_)
#else
  :: kind_ == AGAIN -> recheck(hold_, counted_, isFar, age_)
#endif
  :: kind_ == RELEASE -> release(hold_, token_)
  :: kind_ == YIELD -> yield_(other_, hold_, token_, age_, counted_)
  :: kind_ == LEAVE -> leave(hold_)
  :: kind_ == RENEW || kind_ == CLAIM -> renew(hold_, LEASE)
  :: kind_ == EXTEND -> renew(hold_, LONG)
#ifdef STAYS
  :: kind_ == STAY -> renew(hold_, WINDOW); if :: res == RENEWED -> tell(hold_, counted_) :: else fi
#endif
#ifdef FLAW_IDLE_FLAG
  :: kind_ == SET_IDLE -> if :: own == hold_ -> told = IDLE_TOLD :: else fi; res = LEFT
#endif
  fi
}
