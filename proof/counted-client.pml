/* A process: its line of callers, and its slots. `k` is the client, `t` a slot. */

#ifdef LINGERS
#define IS_IDLE(t) idle[t]
#else
#define IS_IDLE(t) false
#endif
#define IS_USED(t) (inside[t] > 0 || IS_IDLE(t))
#define IS_SEEKING(t) (st[t] == ASKING || st[t] == PARKED || joining[t])
#define CAN_SEEK(k) (st[2*(k)] == FREE || (SHARES(k) || UP_TO(k) != WANT(k)) && st[2*(k)+1] == FREE || CAN_JOIN(2*(k)) || CAN_JOIN(2*(k)+1))
#define SEEKS(k) (waiting[k] > 0 && !IS_SEEKING(2*(k)) && !IS_SEEKING(2*(k)+1) && CAN_SEEK(k))
/* Readers may ask to come into a hold that they share, when nobody is known to wait and nobody
 * asked for far too much. */
#define CAN_JOIN(t) (SHARES((t)/2) && st[t] == HAVE && IS_USED(t) && dl[t] > 0 && !closed[t] && SHORT_ENOUGH(t))
#if defined(LONG) && !defined(FLAW_JOINS_ANYTHING)
#define SHORT_ENOUGH(t) (asked[t] <= TOO_LONG)
#else
#define SHORT_ENOUGH(t) true
#endif
#define mayEnter(t_) (SHARES(k) && IS_USED(t_) && (dl[t_] > 0 || BEHIND_DEADLINE(t_)) && (open[t_] > 0 || UNASKED(t_)) && !closed[t_] && SHORT_ENOUGH(t_))
#ifdef FLAW_KEPT_BEHIND_DEADLINE
#define BEHIND_DEADLINE(t) IS_IDLE(t)
#else
#define BEHIND_DEADLINE(t) false
#endif
#if defined(FLAW_KEPT_NOT_FRESH) || defined(FLAW_KEPT_BEHIND_DEADLINE)
#define UNASKED(t) IS_IDLE(t)
#else
#define UNASKED(t) false
#endif
#ifdef URGENT
#define DUE RECHECK
#define IS_DUE(t) (due[t] == 0)
#else
#define DUE 0
#define IS_DUE(t) true
#endif

#ifdef TOKENS
#define token_(t_) token[t_]
#define setToken(x_) token[t] = x_
#else
#define token_(t_) 0
#define setToken(x_) skip
#endif

#if defined(LINGERS) && TRIES < CLIENTS
#define CLEAR_TRIED(t_) tried[t_] = false
#define IS_TRIED(t) tried[t]
#define TRY(t) tried[t] = tried[t] || st[t] == HAVE
#define IS_TRYING(k) ((k) == TRIES && waiting[k] > 0 && (st[2*(k)] == PARKED || st[2*(k)+1] == PARKED))
#else
#define CLEAR_TRIED(t_) skip
#define IS_TRIED(t) false
#define TRY(t) skip
#define IS_TRYING(k) false
#endif

inline clearSlot(t_) {
  st[t_] = FREE; h[t_] = 0; inside[t_] = 0; has[t_] = 0; lag[t_] = 0; sage[t_] = 0; dl[t_] = 0; open[t_] = 0; closed[t_] = false; isLost[t_] = false;
  joining[t_] = false; busy[t_] = false; CLEAR_OLD(t_); isFirst[t_] = false; due[t_] = 0; passes[t_] = 0; isDown[t_] = false;
#ifdef LINGERS
  idle[t_] = false; mayStay[t_] = false; CLEAR_TRIED(t_);
#endif
#ifdef TOKENS
  token[t_] = 0;
#endif
#ifdef LONG
  asked[t_] = 0
#endif
}

/* What is answered about a hold that its client has done with is not looked at, but a release is,
 * until it was executed. */
inline disown(whose) {
  f = 0;
  do
  :: f < to[k].n ->
     if
     :: to[k].c[f].hold == whose && to[k].c[f].kind < RELEASE ->
        if :: f < to[k].ran -> x = f; drop(x) :: else -> to[k].c[f].kind = to[k].c[f].kind + GIVEN_UP; f++ fi
     :: else -> f++
     fi
  :: else -> break
  od
}
inline finish(kind_) {
  if :: kind_ != 0 -> send(kind_, h[t], 0) :: else fi;
  x = h[t]; d = x; disown(d); clearSlot(t)
}

/* R1: an id that nothing refers to any more; when there is none, it comes later. */
#ifdef LINGERS
#define IS_RECALLED(id) recalls[id]
#else
#define IS_RECALLED(id) false
#endif
#define UNUSED(id) (u[id] == 0 && age[id] == 0 && !IS_RECALLED(id) && !isCurrent(id) && !KEEPS(id) && ghostHold != (id))
inline newHold() {
  i = 4 * k + 1; j = 0;
  do
  :: i < 4 * k + 5 && j == 0 ->
     if
     :: UNUSED(i) ->
        x = 0; do :: x < qn && q[x] != i -> x++ :: else -> break od;
        if
        :: x == qn ->
           x = 0; do :: x < to[k].n && to[k].c[x].hold != i && !IS_ENDED_BY(to[k].c[x], i) -> x++ :: else -> break od;
           if :: x == to[k].n -> j = i :: else fi
        :: else
        fi
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0
}

inline arrive() {
  t = 2 * k;
  if :: st[t] == HAVE && mayEnter(t) -> skip :: else -> t = t + 1 fi;
  if
  :: st[t] == HAVE && mayEnter(t) && waiting[k] == 0 ->
     inside[t]++;
#ifdef LINGERS
#ifdef FLAW_KEPT_BEHIND_DEADLINE
     /* It goes by the lease that it has asked for. */
     if :: idle[t] -> dl[t] = WINDOW :: else fi;
#endif
     idle[t] = false;
#endif
     printf("client %d: a reader comes in, %d inside\n", k, inside[t]);
     checkShare(); checkTerms(t); checkEntry(t)
  :: else ->
     waiting[k]++
  fi;
  t = 0
}

/* For those that wait: into a hold that readers share, or with a new one. */
inline seek() {
  t = 2 * k;
  if :: CAN_JOIN(t) -> skip :: !CAN_JOIN(t) && CAN_JOIN(t + 1) -> t = t + 1 :: else -> skip fi;
  if
  :: CAN_JOIN(t) ->
     joining[t] = true;
#ifdef LINGERS
     idle[t] = false;
#endif
#ifdef LONG
     if :: asked[t] < LEASE -> asked[t] = LEASE :: else fi;
#endif
     send(JOIN, h[t], 0)
  :: else ->
     if :: st[t] != FREE -> t = t + 1 :: else fi;
     newHold();
     if
     :: j != 0 ->
        h[t] = j; st[t] = ASKING; lag[t] = UNKNOWN;
#ifdef LONG
        isFirst[t] = (k == 1 && todo[k] + waiting[k] == C1);
        asked[t] = LEASE_OF(k, isFirst[t]);
#endif
        send(QUEUE, h[t], 0); j = 0
     :: else
     fi
  fi;
  t = 0
}

/* The hold is owned: the callers that it serves come in, and what nobody wants is given back. */
inline found(units_, tok_, waits_, openFor) {
  st[t] = HAVE; busy[t] = false; due[t] = 0; has[t] = units_;
#ifdef TOKENS
  token[t] = tok_;
#endif
  inside[t] = MIN(waiting[k], SERVES(k, units_));
#ifdef LONG
  if :: isFirst[t] && inside[t] > 1 -> inside[t] = 1 :: else fi;
#endif
  waiting[k] = waiting[k] - inside[t];
#ifdef TOKENS
  token[t] = TOKEN_OF_LAST(tok_, inside[t]);
#endif
  if :: waiting[k] == 0 -> waited[k] = 0 :: else fi;
  /* A recall may have been read before the answer. */
  closed[t] = closed[t] || waits_ || !SHARES(k);
  open[t] = (!closed[t] -> openFor : 0);
  lag[t] = 0; sage[t] = 0;
  printf("client %d: owns hold %d, %d units for %d callers\n", k, h[t], units_, inside[t]);
  if
  :: inside[t] == 0 -> finish(RELEASE)
  :: inside[t] > 0 && !SHARES(k) && inside[t] * EACH(k) < has[t] -> has[t] = inside[t] * EACH(k); send(RELEASE, h[t], has[t]); checkEntry(t)
  :: else -> checkEntry(t)
  fi
}

#define REST(ttl, gone_) ((ttl) > (gone_) -> (ttl) - (gone_) : 0)
#ifdef FLAW_SHARE_FROM_RECEIPT
#define OPEN(gone_) SHARE
#else
#define OPEN(gone_) (SHARE > (gone_) -> SHARE - (gone_) : 0)
#endif

#ifdef LINGERS
hidden byte told_;
#define STAYS_BY_ANSWER(t) mayStay[t] = told_
#else
#define STAYS_BY_ANSWER(t) skip
#endif
inline readReply() {
  ck = to[k].c[0].kind; ch = to[k].c[0].hold; cg = to[k].c[0].age; ca = to[k].c[0].arg;
  res = to[k].c[0].res; d = to[k].c[0].d; w = to[k].c[0].w; waits = to[k].c[0].waits;
  cl = d;
#ifdef TOKENS
  ct = to[k].c[0].tok;
#endif
#ifdef LINGERS
  told_ = to[k].c[0].told;
#endif
  drop(0);
  t = (h[2*k+1] == ch -> 2*k+1 : 2*k);
  if
  :: ck == RELEASE || ck == LEAVE ->
     /* Refused: once more. */
     if
     :: res == ERROR ->
        i = token_(t); setToken(ct); send(ck, ch, ca); setToken(i); i = 0
     :: else
     fi
  :: (ck == QUEUE || ck == AGAIN || ck == YIELD) && h[t] == ch && (st[t] == ASKING || st[t] == PARKED) ->
     busy[t] = false;
     if
     :: (res == OWNER || res == MINE) && REST(cl, cg) > 0 ->
        dl[t] = REST(cl, cg); STAYS_BY_ANSWER(t); unhear(ch); found(w, ct, waits, OPEN(cg))
     :: (res == OWNER || res == MINE) && REST(cl, cg) == 0 -> finish(LEAVE)
     :: res == HELD -> st[t] = PARKED; lag[t] = d; sage[t] = 0; due[t] = DUE
     :: res == GONE || res == DONE -> finish(0)
     :: res == STALE || res == ERROR ->
        if :: ck == YIELD -> send(RELEASE, ca, 0) :: else fi;
        finish(LEAVE)
     :: res == DIFFER -> finish(LEAVE); waiting[k] = 0; waited[k] = 0
     fi
  :: ck == JOIN && h[t] == ch && joining[t] && st[t] == HAVE ->
     joining[t] = false;
     if
#ifdef FLAW_LATE_JOIN_COUNTS
     :: (res == MINE || res == OWNER) ->
#else
     :: (res == MINE || res == OWNER) && dl[t] > 0 ->
#endif
        if :: REST(cl, cg) > dl[t] -> dl[t] = REST(cl, cg) :: else fi;
        if
        :: !waits && dl[t] > 0 ->
           if :: OPEN(cg) > open[t] -> open[t] = OPEN(cg) :: else fi;
           inside[t] = inside[t] + waiting[k]; waiting[k] = 0; waited[k] = 0;
           checkTerms(t); checkEntry(t)
        :: else -> closed[t] = true; open[t] = 0
        fi;
        if :: inside[t] == 0 -> finish(RELEASE) :: else fi
#ifndef FLAW_LATE_JOIN_COUNTS
     :: (res == MINE || res == OWNER) && dl[t] == 0 -> finish(LEAVE)
#endif
     :: res == GONE -> finish(LEAVE)
     :: res == STALE -> closed[t] = true
     :: res == ERROR -> closed[t] = true; if :: inside[t] == 0 -> finish(RELEASE) :: else fi
     fi
  :: ck == RENEW && h[t] == ch && st[t] == HAVE ->
     busy[t] = false;
     if
     :: res == RENEWED && dl[t] > 0 -> if :: REST(cl, cg) > dl[t] -> dl[t] = REST(cl, cg) :: else fi
     :: res == GONE -> finish(0)
     :: else
     fi
  :: else
  fi;
  t = 0
}

/* A message counts for the hold that it names. When that was given up, it is left: R3. */
inline readMessage(id) {
  t = (h[2*k+1] == id -> 2*k+1 : 2*k);
  cg = age[id] - 1; w = units[id]; waits = (behind[id] > 0);
#ifdef TOKENS
  ct = told[id];
#endif
  unhear(id);
  if
  :: h[t] == id && (st[t] == ASKING || st[t] == PARKED) ->
     /* Before any answer the sending is all that is known of the time. */
     cg = (lag[t] == UNKNOWN -> sage[t] : cg + lag[t]);
     dl[t] = REST(WINDOW, cg);
     if :: dl[t] > 0 -> disown(id); found(w, ct, waits, OPEN(cg)) :: else -> finish(LEAVE) fi
  :: h[t] == id && st[t] == HAVE -> skip
  :: else -> send(LEAVE, id, 0)
  fi;
  t = 0
}

#if PASSED > 0
/* Permits that a caller has left: to the next caller of this process, or back. */
#define POOLS(t) (!SHARES((t)/2) && UP_TO((t)/2) != WANT((t)/2))
#define IS_FREE(t) (st[t] == HAVE && POOLS(t) && has[t] > inside[t] * EACH((t)/2))
#ifdef FLAW_MORE_USERS_THAN_UNITS
#define HAS_ROOM(t) (st[t] == HAVE && POOLS(t) && inside[t] > 0)
#else
#define HAS_ROOM(t) IS_FREE(t)
#endif
#ifdef FLAW_PASSED_BEHIND_DEADLINE
#define IS_IN_TIME(t) true
#else
#define IS_IN_TIME(t) (dl[t] > 0)
#endif
inline passPermits() {
  passes[t]++; inside[t]++; waiting[k]--; if :: waiting[k] == 0 -> waited[k] = 0 :: else fi;
#ifdef TOKENS
  token[t]++;
#endif
  checkPass();
#ifdef FLAW_PASSED_BEHIND_DEADLINE
  /* The next caller goes by the lease that it has asked for. */
  dl[t] = LEASE;
#endif
  printf("client %d: passes a permit of hold %d, %d inside\n", k, h[t], inside[t]);
  checkEntry(t)
}
inline giveBack() {
  if
  :: inside[t] == 0 -> finish(RELEASE)
  :: else -> has[t] = inside[t] * EACH(k); send(RELEASE, h[t], has[t])
  fi
}
#else
#define POOLS(t) false
#define IS_FREE(t) false
#endif

#ifdef LINGERS
#define SET_IDLE(t) idle[t] = true
/* Behind a writer that does not wait others may have queued, and have told nobody. */
#ifdef FLAW_TRIED_IS_KEPT
#define STAYS(t) (SHARES(k) && mayStay[t] && !closed[t])
#else
#define STAYS(t) (SHARES(k) && mayStay[t] && !closed[t] && !IS_TRIED(t))
#endif
#ifdef FLAW_TRIED_EARLY
#define IS_TOLD_BUSY(t) (w == ASKING_RECALL && !idle[t])
#else
#define IS_TOLD_BUSY(t) (w == ASKING_RECALL && st[t] == HAVE && !idle[t])
#endif
/* Somebody waits for what this hold is, or will be; or does not wait, and wants to know whether
 * anybody is inside. */
inline readRecall(id) {
  w = recalls[id]; recalls[id] = 0;
  t = (h[2*k+1] == id -> 2*k+1 : 2*k);
  if
  :: h[t] == id && IS_TOLD_BUSY(t) -> TRY(t)
#ifndef FLAW_KEPT_THOUGH_WANTED
  :: h[t] == id && !IS_TOLD_BUSY(t) ->
     closed[t] = true; open[t] = 0;
     if :: idle[t] -> finish(RELEASE) :: else fi
#endif
  :: else
  fi;
  t = 0
}
#else
#define STAYS(t) false
#define SET_IDLE(t) skip
#endif

inline unlock() {
  inside[t]--;
  if
  :: inside[t] == 0 && !joining[t] && STAYS(t) -> SET_IDLE(t)
#ifdef FLAW_JOIN_IS_NO_USER
  :: inside[t] == 0 && joining[t] -> send(RELEASE, h[t], 0)
#else
  :: inside[t] == 0 && joining[t] -> skip
#endif
#if PASSED > 0
  /* Until it has turned to its next caller, or to Redis, its units are free. */
  :: POOLS(t) -> skip
#endif
  :: inside[t] == 0 && !joining[t] && !POOLS(t) && !STAYS(t) -> finish(RELEASE)
  :: inside[t] > 0 && !SHARES(k) && !isDown[t] && !POOLS(t) -> has[t] = inside[t] * EACH(k); send(RELEASE, h[t], has[t])
  :: else
  fi
}

/* A writer's next caller, in memory, with a token that was reserved. */
inline pass() {
  passes[t]++; waiting[k]--; if :: waiting[k] == 0 -> waited[k] = 0 :: else fi;
  token[t]++;
  checkEntry(t)
}

/* The writer's next caller waits, and others may: they are first. */
inline yield_() {
  newHold();
  if
  :: j != 0 ->
     ch = h[t]; clearSlot(t);
     h[t] = j; st[t] = ASKING; lag[t] = UNKNOWN;
#ifdef LONG
     asked[t] = LEASE;
#endif
     send(YIELD, h[t], ch); j = 0
  :: else -> yields++
  fi
}

/* The writer goes on as a reader. */
inline downgrade() {
  isDown[t] = true; has[t] = 1;
#ifdef TOKENS
  downToken = token[t];
#endif
  send(RELEASE, h[t], 1);
  checkEntry(t)
}

inline lost() { finish(LEAVE) }

inline abandon() {
  waiting[k]--; if :: waiting[k] == 0 -> waited[k] = 0 :: else fi;
  t = 2 * k;
  if :: st[t] == ASKING || st[t] == PARKED -> skip :: else -> t = t + 1 fi;
  if :: waiting[k] == 0 && (st[t] == ASKING || st[t] == PARKED) -> finish(LEAVE) :: else fi;
  t = 0
}

/* The outcome of the oldest command is unknown: what it is about is left, a release is sent again. */
inline timeOut() {
  ck = to[k].c[0].kind; ch = to[k].c[0].hold; ca = to[k].c[0].arg;
#ifdef TOKENS
  ct = to[k].c[0].tok;
#endif
  printf("client %d: gives up %d for hold %d\n", k, ck, ch);
  if :: to[k].ran > 0 -> drop(0) :: else -> to[k].c[0].kind = ck + GIVEN_UP fi;
  t = (h[2*k+1] == ch -> 2*k+1 : 2*k);
  if
  :: ck == RELEASE || ck == LEAVE -> i = token_(t); setToken(ct); send(ck, ch, ca); setToken(i); i = 0
#ifdef FLAW_NO_LEAVE
  :: ck == QUEUE && h[t] == ch -> finish(0)
#else
  :: ck == QUEUE && h[t] == ch -> finish(LEAVE)
#endif
  :: ck == YIELD -> send(RELEASE, ca, 0); if :: h[t] == ch -> finish(LEAVE) :: else fi
  :: ck == AGAIN && h[t] == ch -> busy[t] = false
  :: ck == RENEW && h[t] == ch -> busy[t] = false
  :: ck == JOIN && h[t] == ch -> joining[t] = false; closed[t] = true; if :: inside[t] == 0 -> finish(RELEASE) :: else fi
  :: else
  fi;
  t = 0
}
