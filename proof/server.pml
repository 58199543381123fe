/* Redis: one inline for each script of lua/handoff/. A script is atomic: every inline runs inside a d_step.
 * Times are what is left of them, in ticks. A lock with exp == 0 does not exist. */

byte own, exp;                 /* lock: the owner's hold, and its TTL */
byte qn, q[QMAX], qd[QMAX];    /* queue and waiters: holds in the order of their tickets, and their deadlines */
#ifdef TOKENS
byte tok, since, last;         /* the owner's token, the start of its chain; the clock. The worst case for tokens is a server
                                  clock that is behind `last` all the time: a token is last + 1 */
byte released[TURNS];          /* for the check: the hold that ended by its own release, while the chain is unbroken */
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

typedef Message { byte hold, age, token };  /* a grant; age: by the server's clock, + BACK */
typedef Channel { Message m[MMAX]; byte n };
Channel heard[CLIENTS];        /* published, and not read yet */

hidden byte i, j, x, f, w, who, granted, front, stands, res, d;
hidden byte wasFree;

inline find(id) {
  f = 0;
  do :: f < qn && q[f] != id -> f++ :: else -> break od
}

inline remove(at) {
  j = at;
  do :: j + 1 < qn -> q[j] = q[j + 1]; qd[j] = qd[j + 1]; j++ :: else -> break od;
  qn--; q[qn] = 0; qd[qn] = 0
}

inline enqueue(id) { assert(qn < QMAX); q[qn] = id; qd[qn] = PATIENCE; qn++ }

/* The chain of hand-overs is broken: what was released before may be told "taken". */
inline breakChain() {
#ifdef TOKENS
  j = 0; do :: j < TURNS -> released[j] = 0; j++ :: else -> break od
#else
  skip
#endif
}

/* What is on its way to `hold` is about a former grant. */
inline outdate(id) {
#ifndef TOKENS
  j = CLIENT(TURN(id)); x = 0;
  do :: x < heard[j].n -> if :: heard[j].m[x].hold == id -> heard[j].m[x].token = OLD :: else fi; x++ :: else -> break od;
  if :: h[TURN(id)] == id && token[TURN(id)] != 0 -> token[TURN(id)] = OLD :: else fi
#else
  skip
#endif
}

/* shared.lua: own. `chain`: the chain of hand-overs goes on. */
inline take(id, ttl, chain) {
  outdate(id);
  own = id; exp = ttl;
#ifdef TOKENS
  tok = last + 1;
#ifdef FLAW_TOKENS_NOT_RESERVED
  last = tok;
#else
  last = tok + PASSES;
#endif
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
#ifdef TOKENS
  tok = 0; since = 0; breakChain()
#endif
}

/* R2 */
inline raise(ttl) { if :: exp < ttl -> exp = ttl :: else fi }

inline publish(id) {
  j = CLIENT(TURN(id));
  if
  :: SUBSCRIBED(j) && !deaf[j] ->
     assert(heard[j].n < MMAX);
     heard[j].m[heard[j].n].hold = id;
     heard[j].m[heard[j].n].age = BACK;
     heard[j].m[heard[j].n].token = TOKEN;
     heard[j].n++
  :: else
  fi
}

/* shared.lua: grantNext. `granted`: the hold that got the lock, `me` (then nothing was written for it), or 0. */
inline grantNext(me, chain) {
  granted = 0;
  do
  :: qn == 0 -> break
  :: else ->
     front = q[0]; stands = qd[0];
     remove(0);
     if
     :: front == me -> granted = me; break
     :: front != me && stands > 0 ->
#ifdef FLAW_PUBLISH_THEN_SKIP
        take(front, WINDOW, chain);
        publish(front);
        if :: sub[CLIENT(TURN(front))] -> granted = front; break :: else fi
#else
        if
        :: sub[CLIENT(TURN(front))] -> take(front, WINDOW, chain); publish(front); granted = front; break
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
  released[TURN(own)] = own;
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

/* acquire.lua. `d`: for held, how long ago it was sent; for owner and mine, the TTL that is answered. */
inline acquire(mode, id, sibling, age_) {
  d = age_;
  find(id);
  if
  :: STALE_AT(age_) -> res = STALE
  :: !STALE_AT(age_) && own == id ->
     res = MINE;
#ifdef FLAW_MINE_NOT_RAISED
     d = LEASE
#else
     raise(LEASE); d = exp
#endif
#ifndef FLAW_AGAIN_QUEUES
  :: !STALE_AT(age_) && own != id && mode == AGAIN && f == qn -> res = GONE
#endif
  :: else ->
     wasFree = (own == 0);
     granted = 0;
     if :: wasFree -> grantNext(id, false) :: else fi;
     if
     :: wasFree && (granted == 0 || granted == id) -> take(id, LEASE, false); res = OWNER; d = LEASE
     :: else ->
        res = HELD;
        find(id);
        if
        :: mode == TRY
        :: mode != TRY && f < qn -> qd[f] = PATIENCE
        :: mode != TRY && f == qn -> enqueue(id)
        fi;
        if :: sibling != 0 -> find(sibling); if :: f < qn -> qd[f] = PATIENCE :: else fi :: else fi
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
inline yield_(old_, new_, token_, age_) {
  d = age_;
  find(new_);
  if
  :: own == new_ -> raise(LEASE); d = exp; res = MINE
  :: own != new_ && f < qn -> res = HELD
  :: own != new_ && f == qn && own != old_ -> whatBecame(token_)
  :: else ->
     receipt();
     enqueue(new_);
     grantNext(new_, true);
     if
     :: granted == new_ -> take(new_, LEASE, true); res = OWNER; d = LEASE
     :: else -> res = HELD
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

/* renew.lua. `d`: the TTL that is answered. */
inline renew(id, ttl) {
  if
  :: own == id ->
#ifdef FLAW_RENEW_SHORTENS
     exp = ttl;
#else
     raise(ttl);
#endif
     d = exp; res = RENEWED
  :: else -> d = 0; res = (own == 0 -> GONE : TAKEN)
  fi
}

/* force-release.lua; what it publishes only ends a lease sooner, and is left out. */
inline forceRelease() { revoked = own; handOver(false) }

inline run_(kind_, hold_, other_, token_, age_) {
  d = 0; res = 0;
  if
  :: kind_ == TRY || kind_ == QUEUE || kind_ == AGAIN -> acquire(kind_, hold_, other_, age_)
  :: kind_ == RELEASE -> release(hold_, token_)
  :: kind_ == YIELD -> yield_(other_, hold_, token_, age_)
  :: kind_ == LEAVE -> leave(hold_)
  :: kind_ == RENEW || kind_ == CLAIM -> renew(hold_, LEASE)
  :: kind_ == EXTEND -> renew(hold_, LONG)
  fi
}
