/* A process with its place, and a second caller there. `p` is the process. */

#define MAY_ASK(p) (st[p] == PARKED && c[p].kind == 0)
#ifdef URGENT
#define IS_DUE(p) due[p]
#else
#define IS_DUE(p) true
#endif

inline clear(x) {
  x.kind = 0; x.hold = 0; x.seen = 0; x.tok = 0; x.lim = 0; x.keep = 0; x.age = 0;
  x.ran = false; x.res = 0; x.rtok = 0; x.since = 0; x.fresh = false
}

/* What a command says that its caller has waited for. RACE: a late copy of one must not accept what the
 * last one has not. */
inline name_() {
  w_ = (seen[p] != 0 -> seen[p] : known[p]);
  if :: jn[p] != NOBODY && jSeen[p] != 0 && (w_ == 0 || jSeen[p] < w_) -> w_ = jSeen[p] :: else fi;
#ifdef FLAW_NAMES_ANOTHER_RUN
  named[p] = w_;
#else
  if :: named[p] == 0 || (w_ != 0 && w_ < named[p]) -> named[p] = w_ :: else fi;
#endif
  c[p].seen = named[p]; w_ = 0
}

inline send(kind_) {
  c[p].kind = kind_; c[p].hold = h[p];
  if
  :: kind_ == TRY || kind_ == QUEUE -> name_(); st[p] = ASKING
  :: kind_ == FINISH -> c[p].tok = run_[p]; c[p].lim = lim[p]; c[p].keep = KEEP_OF(p)
  :: else
  fi;
  if
  :: kind_ != AGAIN && kind_ != RENEW ->
     isLater[p] = false;
     if :: jn[p] == AFTER -> jn[p] = BEFORE :: else fi
  :: else
  fi;
  printf("client %d: sends %d for hold %d\n", p, kind_, h[p])
}

/* Nothing refers to a new hold's id. */
#define COPY_HAS(k, id) (kept[k].kind != 0 && kept[k].hold == (id))
#if COPIES > 1
#define IN_COPY(id) (COPY_HAS(0, id) || COPY_HAS(1, id))
#else
#define IN_COPY(id) COPY_HAS(0, id)
#endif
#define QUEUED(id) (q[0] == (id) || q[1] == (id) || q[2] == (id) || q[3] == (id) || q[4] == (id))
#define NAMED(id) (granted[p] == (id) || ready[p] == (id) || revoked == (id))
#define USED(id) (own == (id) || QUEUED(id) || IN_COPY(id) || NAMED(id))

inline newHold() {
  h[p] = 0; j = 8 * p + 1;
  do :: USED(j) -> j++ :: else -> break od;
  assert(j < 8 * p + 8);
  h[p] = j; j = 0; named[p] = 0
}

inline call_() {
  printf("client %d: a call\n", p);
  bar[p] = dead; seen[p] = 0; known[p] = 0; came[p] = best;
  newHold(); send(TRY)
}

inline join() { printf("client %d: a second caller\n", p); jn[p] = AFTER; jBar[p] = dead; jCame[p] = best }

/* The second caller is the only one. */
inline moveUp() {
  bar[p] = jBar[p]; seen[p] = jSeen[p]; came[p] = jCame[p]; isLater[p] = (jn[p] == AFTER);
  jn[p] = NOBODY; jBar[p] = 0; jSeen[p] = 0; jCame[p] = 0
}

/* The first caller leaves: the place stays for the second one. */
inline left() {
  printf("client %d: a caller leaves\n", p);
  if
  :: jn[p] != NOBODY -> moveUp()
  :: else ->
     w_ = h[p]; leave(w_); w_ = 0; clear(c[p]);
     h[p] = 0; named[p] = 0; known[p] = 0; st[p] = IDLE;
     seen[p] = 0; bar[p] = 0; came[p] = 0; isLater[p] = false
  fi
}

/* The first caller is done: the second one goes on. */
inline next() {
  known[p] = (jn[p] != NOBODY -> run_[p] : 0);
  h[p] = 0; named[p] = 0; run_[p] = 0; dl[p] = 0; lim[p] = 0; st[p] = IDLE; seen[p] = 0; bar[p] = 0; came[p] = 0;
  if
  :: jn[p] != NOBODY -> moveUp(); newHold(); send(TRY)
  :: else
  fi
}

inline serveSecond(token) {
  printf("client %d: the second caller gets the result of %d\n", p, token);
  assert(token > jBar[p]);
  jn[p] = NOBODY; jBar[p] = 0; jSeen[p] = 0; jCame[p] = 0
}

#ifdef FLAW_LATER_CALLERS_TOO
#define CAME_BEFORE(p) (jn[p] != NOBODY)
#else
#define CAME_BEFORE(p) (jn[p] == BEFORE)
#endif
/* It has seen a run, or came before this result was stored. */
#define SUITS(seen_, came_, token) (seen_ != 0 -> (token) >= seen_ : (token) > came_)
#ifdef FLAW_SEEN_BY_PLACE
#define HAS_SEEN(p, token) (seen[p] != 0 && (token) >= seen[p])
#else
#define HAS_SEEN(p, token) SUITS(jSeen[p], jCame[p], token)
#endif

#define LEFT_OF(ticks, age) ((age) < (ticks) -> (ticks) - (age) : 0)
#ifdef FLAW_LATE_PROOF_COUNTS
#define PROVES(p) true
#else
#define PROVES(p) (dl[p] > 0)
#endif

inline readTake() {
  if
  :: c[p].res == KEPT ->
     known[p] = 0;
     if :: CAME_BEFORE(p) && (c[p].fresh || HAS_SEEN(p, c[p].rtok)) -> serveSecond(c[p].rtok) :: else fi;
     if
     :: !isLater[p] && (c[p].fresh || SUITS(seen[p], came[p], c[p].rtok)) ->
        printf("client %d: the caller gets the result of %d\n", p, c[p].rtok);
        assert(c[p].rtok > bar[p]);
        clear(c[p]); next()
     /* It is for a caller that has left, or for none that came as late as this one. */
     :: else -> clear(c[p]); newHold(); send(QUEUE)
     fi
  :: c[p].res == OWNER && c[p].age < LEASE ->
     st[p] = RUNNING; run_[p] = c[p].rtok; dl[p] = LEFT_OF(LEASE, c[p].age);
     lim[p] = LEFT_OF(LIMIT, c[p].since);
     printf("client %d: runs with token %d\n", p, run_[p]);
     clear(c[p])
  :: c[p].res == HELD ->
     if :: seen[p] == 0 && !isLater[p] -> seen[p] = c[p].rtok :: else fi;
     known[p] = c[p].rtok;
     if :: jn[p] == BEFORE && jSeen[p] == 0 -> jSeen[p] = c[p].rtok :: else fi;
     if
     :: c[p].kind == TRY -> clear(c[p]); send(QUEUE)
     :: else -> clear(c[p]); st[p] = PARKED
     fi
  :: else ->
     /* Stale, or its lease is over. */
     leave(h[p]); clear(c[p]); newHold(); send(QUEUE)
  fi
}

inline read() {
  if
  :: c[p].kind == TRY || c[p].kind == QUEUE -> readTake()
  :: c[p].kind == AGAIN ->
     if
     :: c[p].res == OWNER -> clear(c[p]); send(QUEUE)
     :: c[p].res == GONE -> clear(c[p]); newHold(); send(QUEUE)
     :: else -> clear(c[p])
     fi
  :: c[p].kind == RENEW ->
     if
     :: c[p].res == DONE ->
        /* Behind the deadline it may speak of a late copy's grant. */
        if :: PROVES(p) -> lim[p] = MAX(lim[p], LEFT_OF(LIMIT, c[p].since)) :: else fi;
        if :: dl[p] > 0 -> dl[p] = MAX(dl[p], LEFT_OF(LEASE, c[p].age)) :: else fi
     :: else -> dl[p] = 0
     fi;
     clear(c[p])
  :: c[p].kind == FINISH ->
     printf("client %d: its result: %d\n", p, c[p].res);
     if :: c[p].res == STORED && CAME_BEFORE(p) -> serveSecond(run_[p]) :: else fi;
     clear(c[p]); next()
  :: c[p].kind == RELEASE -> clear(c[p]); next()
  fi
}

/* A granted hold asks before its body: there may be a result. */
inline readGrant() {
  if
  :: granted[p] == h[p] && MAY_ASK(p) ->
     granted[p] = 0;
#ifdef FLAW_GRANT_RUNS
     if
     :: own == h[p] ->
        oExp = LEASE; checkTaken2(p);
        st[p] = RUNNING; run_[p] = oTok; dl[p] = LEASE; lim[p] = LIMIT
     :: else
     fi
#else
     send(QUEUE)
#endif
  :: else -> w_ = granted[p]; granted[p] = 0; leave(w_); w_ = 0
  fi
}

inline readReady() {
  if
  :: ready[p] == h[p] && MAY_ASK(p) -> ready[p] = 0; newHold(); send(QUEUE)
  :: else -> ready[p] = 0
  fi
}

inline lookAgain() {
#ifdef URGENT
  due[p] = false;
#endif
  send(AGAIN)
}

#ifdef FLAW_LATE_WITHOUT_LIMIT
#define MAY_SEND_LATE(p) true
#else
#define MAY_SEND_LATE(p) (lim[p] > 0)
#endif

/* The body returns. What is too late is not sent. */
inline ends() {
  printf("client %d: its body ends\n", p);
  if
  :: dl[p] > 0 || MAY_SEND_LATE(p) -> dl[p] = 0; send(FINISH); st[p] = FINISHING
  :: else -> next()
  fi
}
inline throw_() {
  printf("client %d: its body throws\n", p);
  if
  :: dl[p] > 0 -> dl[p] = 0; send(RELEASE); st[p] = RELEASING
  :: else -> next()
  fi
}

inline again() {
  printf("client %d: sent again\n", p);
  c[p].ran = false; c[p].res = 0; c[p].rtok = 0; c[p].since = 0; c[p].fresh = false
}

#define COPYABLE(x) (!x.ran && (x.kind == TRY || x.kind == QUEUE || x.kind == FINISH))
inline copy(x, y) {
  printf("a copy of command %d of hold %d stays\n", x.kind, x.hold);
  y.kind = x.kind; y.hold = x.hold; y.seen = x.seen; y.tok = x.tok;
  y.lim = x.lim; y.keep = x.keep; y.age = x.age
}

inline crash() {
  printf("client %d: crashes\n", p);
  st[p] = DEAD; h[p] = 0; seen[p] = 0; run_[p] = 0; dl[p] = 0; lim[p] = 0; bar[p] = 0; todo[p] = 0;
  jn[p] = NOBODY; jSeen[p] = 0; jBar[p] = 0; granted[p] = 0; ready[p] = 0;
  known[p] = 0; named[p] = 0; isLater[p] = false; came[p] = 0; jCame[p] = 0
}
