/* The connections that carry the commands, and what can go wrong with them. A connection is in
 * order: its first `ran` commands were executed and their replies wait to be read. */

typedef Command {
  byte kind, hold, other;      /* other: the old hold of a yield */
  bool counted;                /* was the client heard when this was sent? The digit of what it queues */
#ifdef FAR
  bool far;                    /* asked: does its place stand far behind? Answered: the same, by Redis */
#endif
  byte token;                  /* answered with owner */
#ifdef TOKENS
  byte told;                   /* sent with a release or yield */
#endif
  byte age;                    /* since it was first sent */
  byte res, d                  /* the answer, and its number */
#ifdef STAYS
  ; bool waits                 /* answered with "yours": does somebody wait? */
#ifdef TOKENS
  ; byte time                  /* and the server's time */
#endif
#endif
}
typedef Connection { Command c[K]; byte n, ran }
Connection to[CLIENTS];
Command kept;                  /* a copy of a command that the network still has: it may run at any later time */
byte copied;                   /* the hold of such a copy */
#ifdef CAN_REPEAT
Command late;                  /* taken out of its connection, to be sent again behind others: what Redis did not know (NOSCRIPT), or
                                  sent to another node, or what a Cluster client sends again for a lost answer */
#define UNDER_WAY (late.kind != 0)
#else
#define UNDER_WAY false
#endif
byte ghost;                    /* since the copy was sent, while the lock is held by it */

inline copyCommand(from, dest) {
  dest.kind = from.kind; dest.hold = from.hold; dest.other = from.other; dest.token = from.token; dest.counted = from.counted;
#ifdef FAR
  dest.far = from.far;
#endif
#ifdef TOKENS
  dest.told = from.told;
#endif
  dest.age = from.age; dest.res = from.res; dest.d = from.d
#ifdef STAYS
  ; dest.waits = from.waits
#ifdef TOKENS
  ; dest.time = from.time
#endif
#endif
}

inline clear(at) {
#ifdef STAYS
  at.waits = false;
#ifdef TOKENS
  at.time = 0;
#endif
#endif
#ifdef TOKENS
  at.told = 0;
#endif
#ifdef FAR
  at.far = false;
#endif
  at.counted = false;
  at.kind = 0; at.hold = 0; at.other = 0; at.token = 0; at.age = 0; at.res = 0; at.d = 0
}

/* Takes command `at` out. */
inline drop(at) {
  w = at;
  do :: w + 1 < to[k].n -> copyCommand(to[k].c[w + 1], to[k].c[w]); w++ :: else -> break od;
  to[k].n--;
  if :: at < to[k].ran -> to[k].ran-- :: else fi;
  clear(to[k].c[to[k].n])
}

inline send(kind_, hold_, other_) {
  assert(to[k].n < K);
  to[k].c[to[k].n].kind = kind_;
  to[k].c[to[k].n].hold = hold_;
  to[k].c[to[k].n].other = other_;
#ifdef FLAW_QUEUES_UNHEARD
  to[k].c[to[k].n].counted = (kind_ == QUEUE || kind_ == AGAIN || kind_ == YIELD);
#else
  to[k].c[to[k].n].counted = (SUBSCRIBED(k) && (TELLS(kind_) || kind_ == QUEUE || kind_ == AGAIN || kind_ == YIELD));
#endif
#ifdef FAR
  to[k].c[to[k].n].far = (kind_ == AGAIN && IS_FAR(t));
#endif
#ifdef TOKENS
  if :: kind_ == RELEASE || kind_ == YIELD -> to[k].c[to[k].n].told = token[t] :: else fi;
#endif
  to[k].n++
}

hidden byte ck, ch, co, ct, ca, cr, cd;
hidden byte cc, cf;
#ifdef STAYS
hidden byte cw, cs;
#endif
#ifdef FAR
#define FAR_OF(at) at.far
#else
#define FAR_OF(at) false
#endif

#define deniable(kind_) (((kind_) & 15) != LEAVE)
#define AT to[k].c[to[k].ran]
#ifdef TOKENS
#define TOLD(at) at.told
#else
#define TOLD(at) 0
#endif
#if defined(CAN_BREAK) || defined(CAN_KEEP) || defined(CAN_REPEAT)
#define CAN_SEND_AGAIN (faults > 0)
#else
#define CAN_SEND_AGAIN false
#endif
/* Does it matter how long ago a command was sent? */
#define AGES(at) (at.kind != RELEASE && at.kind != LEAVE && ((at.kind & 15) < RELEASE || at.kind < GIVEN_UP) && (at.res == 0 || at.res == OWNER || at.res == MINE || at.res == RENEWED))

/* A reply that nobody needs counts as read at once. */
inline executed() {
  keptInView(AT.kind, AT.hold, res);
  if
  :: AT.kind >= GIVEN_UP || AT.kind == LEAVE || st[QUEUE_OF(AT.hold)] == DEAD || (AT.kind == RELEASE && res != ERROR && !CAN_SEND_AGAIN) ->
     x = to[k].ran; drop(x)
  :: else ->
     AT.res = res;
     if
     :: res == HELD -> AT.d = (d > LAG_MAX -> LAG_MAX : d); AT.token = 0
     :: res == OWNER || res == MINE -> AT.d = d; AT.token = TOKEN
     :: res == RENEWED -> AT.d = d
     :: else -> AT.d = 0
     fi;
#ifdef FAR
     AT.far = (res == HELD && farOff);
#endif
     answerStay();
     to[k].ran++
  fi
}

/* Race: a copy of an acquire that is run behind the end of its hold takes the lock once more: its
 * answer is looked at. */
#ifdef CAN_REPEAT
#define MAY_TAKE(kind_) (kind_ == TRY || kind_ == QUEUE)
#else
#define MAY_TAKE(kind_) false
#endif
#define IS_DISOWNED(at) (at.hold == h[t] && h[t] != 0 && at.kind != RELEASE && at.kind != YIELD && at.kind < GIVEN_UP && at.kind != LEAVE && !MAY_TAKE(at.kind))

/* The hold of lock queue t is over: what is answered to its commands is not looked at. A release or
 * yield is looked at, once more. */
inline disown() {
#ifdef CAN_REPEAT
  if :: late.kind != 0 && IS_DISOWNED(late) -> late.kind = late.kind + GIVEN_UP :: else fi;
#endif
  x = 0;
  do
  :: x < to[k].n ->
     if
     :: IS_DISOWNED(to[k].c[x]) ->
        if :: x < to[k].ran -> drop(x) :: else -> to[k].c[x].kind = to[k].c[x].kind + GIVEN_UP; x++ fi
     :: else -> x++
     fi
  :: else -> break
  od
}

/* The server runs the next command of client k. */
inline serve() {
  ck = AT.kind & 15; ch = AT.hold; co = AT.other; ct = TOLD(AT); ca = AT.age; cc = AT.counted; cf = FAR_OF(AT);
  printf("redis: runs %d for hold %d\n", ck, ch);
#ifdef CAN_FULL
  kk = qn + (own != 0);
#endif
#ifdef SILENCE
  silent[k] = 0;
#endif
  run_(ck, ch, co, ct, ca, cc, cf);
  printf("redis: answers %d; owner %d for %d, %d waiting\n", res, own, exp, qn);
  checkAnswer(ck, ch, co);
#ifdef CAN_FULL
  /* A full Redis gives nobody a lock that needs more memory, and refuses nothing that ends a hold
   * or keeps a place. */
  if :: noMemory -> assert((res != OWNER || qn + (own != 0) <= kk) && (res != ERROR || ck == TRY || ck == QUEUE)) :: else fi;
  kk = 0;
#endif
  executed()
}

/* The script's first write is refused: nothing was done. */
inline deny() {
  res = ERROR; d = 0;
#ifdef FLAW_PUBLISH_FIRST
  if :: qn > 0 && own != 0 && own == (AT.kind == YIELD -> AT.other : AT.hold) -> publish(q[0]) :: else fi;
#endif
  printf("redis: refuses %d for hold %d\n", AT.kind, AT.hold);
  executed()
}

/* The connection breaks: what has no answer is sent again. */
inline resend() {
  printf("network: client %d is cut off and sends again\n", k);
  i = 0;
  do :: i < to[k].n ->
     if :: to[k].c[i].res != 0 ->
           to[k].c[i].res = 0; to[k].c[i].d = 0; to[k].c[i].token = 0
        :: else
     fi;
     i++
  :: else -> break
  od;
  cutOff();
  to[k].ran = 0
}

/* The connection breaks: what has no answer is rejected, and its outcome is unknown. */
inline reject() {
  printf("network: client %d is cut off, its commands are rejected\n", k);
  i = to[k].n;
  to[k].ran = 0;
  cutOff();
  do :: i > 0 ->
     ck = to[k].c[0].kind; ch = to[k].c[0].hold; co = to[k].c[0].other;
     drop(0);
     if :: ck < GIVEN_UP -> failed() :: else fi;
     i--
  :: else -> break
  od
}

/* The oldest command is given up; it may be executed yet, and its answer is not looked at. */
inline timeOut() {
  ck = to[k].c[0].kind; ch = to[k].c[0].hold; co = to[k].c[0].other;
  printf("client %d: gives up %d of hold %d\n", k, ck, ch);
  if
  :: to[k].ran > 0 -> drop(0)
  :: else -> to[k].c[0].kind = ck + GIVEN_UP
  fi;
  failed()
}

inline keep() {
  printf("network: keeps a copy of %d of hold %d\n", AT.kind, AT.hold);
  copyCommand(AT, kept);
  kept.kind = kept.kind & 15;
  copied = kept.hold
}

#ifdef CAN_REPEAT
/* The oldest command of client k comes back to it, executed or not, and is sent again later, behind
 * what is sent meanwhile. */
inline putOff() {
  printf("network: client %d will send %d of hold %d again\n", k, to[k].c[0].kind, to[k].c[0].hold);
  copyCommand(to[k].c[0], late);
  late.res = 0; late.d = 0; late.token = 0;
  drop(0)
}

inline sendAgain() {
  copyCommand(late, to[k].c[to[k].n]);
  to[k].n++;
  clear(late)
}
#endif

inline runKept() {
  ck = kept.kind; ch = kept.hold; co = kept.other; ct = TOLD(kept); ca = kept.age; cc = kept.counted; cf = FAR_OF(kept);
  run_(ck, ch, co, ct, ca, cc, cf);
  printf("redis: runs the late copy of %d of hold %d: %d; owner %d for %d\n", ck, ch, res, own, exp);
  if :: res == OWNER && h[QUEUE_OF(ch)] != ch -> ghost = ca + 1 :: else fi;
  clear(kept)
}

/* The process ends. What it has sent may still be executed. */
inline crash() {
  printf("client %d crashes\n", k);
  t = 0;
  do :: t < QUEUES -> if :: CLIENT(t) == k -> rest(); todo[t] = 0; st[t] = DEAD :: else fi; t++ :: else -> break od;
  t = 0;
  do :: to[k].ran > 0 -> drop(0) :: else -> break od;
#ifdef CAN_REPEAT
  if :: late.kind != 0 && CLIENT(QUEUE_OF(late.hold)) == k -> clear(late) :: else fi;
#endif
  hush()
}

inline hush() {
  printf("client %d: messages on their way are lost\n", k);
  do :: heard[k].n > 0 -> unhear() :: else -> break od
}

inline unhear() {
  w = 0;
  heard[k].n--;
  do
  :: w < heard[k].n ->
     heard[k].m[w].hold = heard[k].m[w + 1].hold; heard[k].m[w].age = heard[k].m[w + 1].age;
     heard[k].m[w].token = heard[k].m[w + 1].token;
#ifdef STAYS
     heard[k].m[w].recall = heard[k].m[w + 1].recall; heard[k].m[w].waits = heard[k].m[w + 1].waits;
#ifdef TOKENS
     heard[k].m[w].time = heard[k].m[w + 1].time;
#endif
#endif
     w++
  :: else -> break
  od;
  heard[k].m[w].hold = 0; heard[k].m[w].age = 0; heard[k].m[w].token = 0
#ifdef STAYS
  ; heard[k].m[w].recall = false; heard[k].m[w].waits = false
#ifdef TOKENS
  ; heard[k].m[w].time = 0
#endif
#endif
}

/* SUBSCRIBE is acknowledged: everybody looks again. */
inline subscribe() {
  sub[k] = true;
  cutOff();
#ifdef CAN_APART
  apart[k] = false;
#endif
#ifdef TIMED
  i = 0;
  do
  :: i < QUEUES ->
     if
     :: CLIENT(i) == k ->
        due[i] = 0;
        if :: st[i] == ASKING || st[i] == YIELDING || busy[i] && st[i] == PARKED -> acked[i] = true :: else fi
     :: else
     fi;
     i++
  :: else -> break
  od
#endif
}
