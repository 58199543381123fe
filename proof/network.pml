/* The connections that carry the commands, and what can go wrong with them. A connection is in order: its first `ran`
 * commands were executed and their replies wait to be read. */

typedef Command {
  byte kind, hold, other;      /* other: the old hold of a yield; the sibling's hold of a re-check */
  byte token;                  /* answered with owner */
#ifdef TOKENS
  byte told;                   /* sent with a release or yield */
#endif
  byte age;                    /* since it was first sent */
  byte res, d                  /* the answer, and its number */
}
typedef Connection { Command c[K]; byte n, ran }
Connection to[CLIENTS];
Command kept;                  /* a copy of a command that the network still has: it may run at any later time */
byte copied;                   /* the hold of such a copy */
byte ghost;                    /* since the copy was sent, while the lock is held by it */

inline copyCommand(from, dest) {
  dest.kind = from.kind; dest.hold = from.hold; dest.other = from.other; dest.token = from.token;
#ifdef TOKENS
  dest.told = from.told;
#endif
  dest.age = from.age; dest.res = from.res; dest.d = from.d
}

inline clear(at) {
#ifdef TOKENS
  at.told = 0;
#endif
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
#ifdef TOKENS
  if :: kind_ == RELEASE || kind_ == YIELD -> to[k].c[to[k].n].told = token[t] :: else fi;
#endif
  to[k].n++
}

hidden byte ck, ch, co, ct, ca, cr, cd;

#define deniable(kind_) (((kind_) & 15) != LEAVE)
#define AT to[k].c[to[k].ran]
#ifdef TOKENS
#define TOLD(at) at.told
#else
#define TOLD(at) 0
#endif
#if defined(CAN_BREAK) || defined(CAN_KEEP)
#define CAN_SEND_AGAIN (faults > 0)
#else
#define CAN_SEND_AGAIN false
#endif
/* Does it matter how long ago a command was sent? */
#define AGES(at) (at.kind != RELEASE && at.kind != LEAVE && ((at.kind & 15) < RELEASE || at.kind < GIVEN_UP) && (at.res == 0 || at.res == OWNER || at.res == MINE || at.res == RENEWED))

/* A reply that nobody needs counts as read at once. */
inline executed() {
  if
  :: AT.kind >= GIVEN_UP || AT.kind == LEAVE || st[TURN(AT.hold)] == DEAD || (AT.kind == RELEASE && res != ERROR && !CAN_SEND_AGAIN) ->
     x = to[k].ran; drop(x)
  :: else ->
     AT.res = res;
     if
     :: res == HELD -> AT.d = (d > LAG_MAX -> LAG_MAX : d); AT.token = 0
     :: res == OWNER || res == MINE -> AT.d = d; AT.token = TOKEN
     :: res == RENEWED -> AT.d = d
     :: else -> AT.d = 0
     fi;
     to[k].ran++
  fi
}

/* The hold of turn t is over: what is answered to its commands is not looked at. A release or yield is looked at, once more. */
inline disown() {
  x = 0;
  do
  :: x < to[k].n ->
     if
     :: to[k].c[x].hold == h[t] && h[t] != 0 && to[k].c[x].kind != RELEASE && to[k].c[x].kind != YIELD && to[k].c[x].kind < GIVEN_UP && to[k].c[x].kind != LEAVE ->
        if :: x < to[k].ran -> drop(x) :: else -> to[k].c[x].kind = to[k].c[x].kind + GIVEN_UP; x++ fi
     :: else -> x++
     fi
  :: else -> break
  od
}

/* The server runs the next command of client k. */
inline serve() {
  ck = AT.kind & 15; ch = AT.hold; co = AT.other; ct = TOLD(AT); ca = AT.age;
  printf("redis: runs %d for hold %d\n", ck, ch);
  run_(ck, ch, co, ct, ca);
  printf("redis: answers %d; owner %d for %d, %d waiting\n", res, own, exp, qn);
  checkAnswer(ck, ch, co);
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
  to[k].ran = 0
}

/* The connection breaks: what has no answer is rejected, and its outcome is unknown. */
inline reject() {
  printf("network: client %d is cut off, its commands are rejected\n", k);
  i = to[k].n;
  to[k].ran = 0;
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

inline runKept() {
  ck = kept.kind; ch = kept.hold; co = kept.other; ct = TOLD(kept); ca = kept.age;
  run_(ck, ch, co, ct, ca);
  printf("redis: runs the late copy of %d of hold %d: %d; owner %d for %d\n", ck, ch, res, own, exp);
  if :: res == OWNER && h[TURN(ch)] != ch -> ghost = ca + 1 :: else fi;
  clear(kept)
}

/* The process ends. What it has sent may still be executed. */
inline crash() {
  printf("client %d crashes\n", k);
  t = 0;
  do :: t < TURNS -> if :: CLIENT(t) == k -> rest(); todo[t] = 0; st[t] = DEAD :: else fi; t++ :: else -> break od;
  t = 0;
  do :: to[k].ran > 0 -> drop(0) :: else -> break od;
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
     heard[k].m[w].token = heard[k].m[w + 1].token; w++
  :: else -> break
  od;
  heard[k].m[w].hold = 0; heard[k].m[w].age = 0; heard[k].m[w].token = 0
}

/* SUBSCRIBE is acknowledged: everybody looks again. */
inline subscribe() {
  sub[k] = true;
#ifdef CAN_APART
  apart[k] = false;
#endif
#if defined(CALM) || defined(URGENT)
  i = 0; do :: i < TURNS -> if :: CLIENT(i) == k -> due[i] = 0 :: else fi; i++ :: else -> break od
#endif
}
