/* The connections that carry the commands. One is in order: its first `ran` commands were executed,
 * their replies wait to be read. */

typedef Command {
  byte kind, hold, arg;        /* arg: units that stay; of a yield, the hold that ends */
  byte age, ttl;               /* since it was sent; the lease that it asks for */
#ifdef TOKENS
  byte tok;                    /* told with a release; answered with owner and mine */
#endif
  byte res, d, w;              /* the answer, its TTL or lag, its units */
  bool waits;                  /* answered: does somebody wait? */
#ifdef LINGERS
  bool told                    /* answered: is its client told of those that wait? */
#endif
}
typedef Connection { Command c[K]; byte n, ran }
Connection to[CLIENTS];
Command kept[COPIES];          /* copies that the network still has */

inline copyCommand(from, dest) {
  dest.kind = from.kind; dest.hold = from.hold; dest.arg = from.arg; dest.age = from.age; dest.ttl = from.ttl;
#ifdef TOKENS
  dest.tok = from.tok;
#endif
  dest.res = from.res; dest.d = from.d; dest.w = from.w; dest.waits = from.waits;
#ifdef LINGERS
  dest.told = from.told
#endif
}
inline clear(at) {
  at.kind = 0; at.hold = 0; at.arg = 0; at.age = 0; at.ttl = 0;
#ifdef TOKENS
  at.tok = 0;
#endif
  at.res = 0; at.d = 0; at.w = 0; at.waits = false;
#ifdef LINGERS
  at.told = false
#endif
}
inline drop(place) {
  j = place;
  do :: j + 1 < to[k].n -> copyCommand(to[k].c[j + 1], to[k].c[j]); j++ :: else -> break od;
  to[k].n--;
  if :: place < to[k].ran -> to[k].ran-- :: else fi;
  clear(to[k].c[to[k].n])
}

inline send(kind_, hold_, arg_) {
  assert(to[k].n < K);
  to[k].c[to[k].n].kind = kind_; to[k].c[to[k].n].hold = hold_; to[k].c[to[k].n].arg = arg_;
  to[k].c[to[k].n].ttl = (kind_ == QUEUE || kind_ == YIELD || kind_ == JOIN -> LEASE_FOR(k, kind_ != JOIN && isFirst[t]) : (kind_ == AGAIN || kind_ == RENEW -> LEASE : 0));
#ifdef TOKENS
  to[k].c[to[k].n].tok = (kind_ == RELEASE -> token[t] : 0);   /* a yield ends it, so no unit stays that needs one */
#endif
  to[k].n++
}

#define AT to[k].c[to[k].ran]
/* A reply that nobody needs counts as read at once. */
#define UNNEEDED(at) (dead[k] || at.kind >= GIVEN_UP || ((at.kind == LEAVE || at.kind == RELEASE) && res != ERROR))
hidden byte ck, ch, ca, cg, ct, cl;

inline serve() {
  ck = AT.kind & 7; ch = AT.hold; ca = AT.arg; cg = AT.age; cl = AT.ttl;
#ifdef TOKENS
  ct = AT.tok;
#endif
  run_(ck, ch, ca, cg, ct, cl);
  printf("redis: runs %d for hold %d: answers %d; %d of %d used, %d waiting\n", ck, ch, res, used, permits, qn);
  /* A full Redis refuses nothing that ends a hold, or keeps a hold or a place. */
  /* What is asked about a hold makes none, and queues none. */
  assert(ck != JOIN || (res != OWNER && res != HELD));
  assert(!(noMemory && !noQueue && res == ERROR && ck != QUEUE));
  if
  :: UNNEEDED(AT) -> x = to[k].ran; drop(x)
  :: else ->
     AT.res = res; AT.d = d; AT.w = w; AT.waits = waits;
#ifdef LINGERS
     AT.told = (res == OWNER && isTold[ch]);
#endif
#ifdef TOKENS
     AT.tok = (res == OWNER || res == MINE -> tok[ch] : AT.tok);
#endif
     if :: res == HELD || res == GONE || res == STALE || res == DIFFER -> AT.age = 0 :: else fi;
     to[k].ran++
  fi
}

#define isCurrent(id) (h[2*CLIENT(id)] == (id) || h[2*CLIENT(id)+1] == (id))
#define KEEPS(id) (KEEPS_AT(0, id) || KEEPS_AT(COPIES - 1, id))
#define KEEPS_AT(at, id) (kept[at].hold == (id) || IS_ENDED_BY(kept[at], id))
inline keep(at) {
  copyCommand(AT, kept[at]);
  kept[at].kind = kept[at].kind & 7;
  printf("network: keeps a copy of %d for hold %d\n", kept[at].kind, kept[at].hold)
}
inline runKept(at) {
  ck = kept[at].kind; ch = kept[at].hold; ca = kept[at].arg; cg = kept[at].age; cl = kept[at].ttl;
#ifdef TOKENS
  ct = kept[at].tok;
#endif
  run_(ck, ch, ca, cg, ct, cl);
  printf("redis: runs the late copy of %d for hold %d: %d; %d of %d used\n", ck, ch, res, used, permits);
  if :: res == OWNER && !isCurrent(ch) -> ghost = cg + 1; ghostHold = ch :: else fi;
  assert(ck != JOIN || (res != OWNER && res != HELD));
  clear(kept[at])
}

inline crash() {
  printf("client %d crashes\n", k);
  dead[k] = true; frozen[k] = false; todo[k] = 0; waiting[k] = 0; waited[k] = 0;
  x = 0; do :: x < 2 -> clearSlot(2 * k + x); x++ :: else -> break od;
  do :: to[k].ran > 0 -> drop(0) :: else -> break od;
  hush()
}
inline hush() {
  printf("client %d: messages on their way are lost\n", k);
  x = 4 * k + 1;
  do
  :: x < 4 * k + 5 ->
     unhear(x);
#ifdef LINGERS
     recalls[x] = 0;
#endif
     x++
  :: else -> break
  od
}
inline unhear(gone) {
  age[gone] = 0; units[gone] = 0; behind[gone] = 0;
#ifdef TOKENS
  told[gone] = 0
#endif
}
