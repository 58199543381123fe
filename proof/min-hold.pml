/* A least time (LEAST=n): callers of lock queue 0 keep the lock for n ticks at least, whatever becomes of them. A release before
 * that puts nobody's hold into the lock, for the rest. README.md says what is checked. */
#define RELEASE_AT 12

#ifdef LEAST
#define NOBODY 7               /* an id that no lock queue takes */
#define IS_PACED(t) ((t) == 0)
byte rest_;                    /* until the least time of the last hold with one is over, from when Redis gave it */
byte inside_;                  /* since its caller came in, by the client's clock */
bool served;                   /* for the checks: a caller has had it, */
bool isRest;                   /* and it was given back before its time */
#ifdef CAN_STEP
byte lead_;                    /* by how much tokens are ahead of the server's clock, since that was set back; they stay so, which is the worst case */
byte most_;                    /* for the checks: what its client said was left, from when its release came */
#endif
#ifdef FLAW_REST_BY_LAST_ANSWER
byte unread_, early_;          /* since when an answer to its client is unread; so much too early that client takes the server's time to be */
#endif

/* The lock has been written for `id`: nobody gets it before its time. */
inline paces(id) {
  assert(!served || rest_ == 0);
  served = false; isRest = false; rest_ = (IS_PACED(QUEUE_OF(id)) -> LEAST : 0)
#ifdef CAN_STEP
  most_ = 0
#endif
}

/* A caller comes in. */
inline enters() {
  if
  :: IS_PACED(t) -> assert(!served); served = true; inside_ = 0
  :: else
  fi
}

inline forced() { served = false; isRest = false; rest_ = 0 }

/* The end by the token. */
#if defined(FLAW_REST_FROM_ARRIVAL)
#define UNTIL LEAST
#elif defined(FLAW_REST_BY_LAST_ANSWER)
#define UNTIL (rest_ > early_ -> rest_ - early_ : 0)
#elif defined(CAN_STEP)
#define UNTIL (rest_ + lead_)
#else
#define UNTIL rest_
#endif
/* What is left by the clock of its client bounds it; where no clock steps, it is never less. */
#if defined(CAN_STEP) && !defined(FLAW_REST_BY_TOKEN)
#define REST(most) (UNTIL < (most) -> UNTIL : (most))
#else
#define REST(most) UNTIL
#endif

/* release-at.lua. A second copy finds a hold that is not its own. */
inline releaseAt(id, token_, left_) {
  if
  :: own == id && REST(left_) > 0 ->
     receipt(); isRest = true;
#ifdef CAN_STEP
     most_ = left_;
#endif
#ifndef FLAW_REST_IS_ITS_OWN
     own = NOBODY;
#ifdef TOKENS
     tok++;
#endif
#endif
     exp = REST(left_);
     res = RELEASED
  :: else -> release(id, token_)
  fi
}

/* What its client sends with it. Asked for again, it says the same. */
#ifdef CAN_STEP
#define LEFT_HERE(t) (IS_PACED(t) && inside_ < LEAST -> LEAST - inside_ : 0)
inline clockWentBack() {
  lead_ = BACK;
  if :: isRest && own != 0 -> most_ = most_ + BACK :: else fi
}
#endif

inline leavesIt() { if :: IS_PACED(t) -> inside_ = 0 :: else fi }

/* What is left ends with its time, or with what its client's clock said: nothing prolongs it, but a step back behind that. */
#ifdef CAN_STEP
inline checkRest() { assert(!isRest || own == 0 || exp <= rest_ || exp <= most_) }
#else
inline checkRest() { assert(!isRest || own == 0 || exp <= rest_) }
#endif

inline passesTime() {
  if :: rest_ > 0 -> rest_-- :: else fi;
  if :: rest_ == 0 -> served = false :: else fi;
  if :: own == 0 -> isRest = false :: else fi;
#ifdef CAN_STEP
  if :: own == 0 || most_ == 0 -> most_ = 0 :: else -> most_-- fi;
#endif
#ifdef FLAW_REST_BY_LAST_ANSWER
  if :: to[0].ran > 0 && unread_ < LEAST -> unread_++ :: else fi;
#endif
  if :: st[0] == HOLDING && inside_ < LEAST -> inside_++ :: else fi
}
/* A late message: its release may be on its way once more, and `leave` would be there first. */
#ifdef FLAW_STRAY_ENDS_REST
#define IS_ENDING(id) false
#else
#ifdef CAN_REPEAT
#define IS_LATE(id) (late.kind == RELEASE_AT && late.hold == (id))
#else
#define IS_LATE(id) false
#endif
#define ENDING_AT(x, id) (to[k].c[x].kind == RELEASE_AT && to[k].c[x].hold == (id))
#define IS_ENDING(id) (IS_LATE(id) || ENDING_AT(0, id) || ENDING_AT(1, id) || ENDING_AT(2, id) || ENDING_AT(3, id) || ENDING_AT(4, id))
#endif
#define ENDS_BY(t) (IS_PACED(t) && inside_ < LEAST -> RELEASE_AT : RELEASE)
#ifdef FLAW_REST_IS_ITS_OWN
#define IS_NOBODYS(id) isRest
#else
#define IS_NOBODYS(id) ((id) == NOBODY)
#endif
/* What must be left for its caller to get it without a claim. */
#ifdef FLAW_PACED_UNCLAIMED
#define ENOUGH(t, usual) (usual)
#else
#define ENOUGH(t, usual) (IS_PACED(t) -> 99 : (usual))
#endif
#ifdef FLAW_PACED_IS_PASSED
#define GOES_ON(t) true
#else
#define GOES_ON(t) (!IS_PACED(t))
#endif
#else
#define IS_PACED(t) false
#define ENDS_BY(t) RELEASE
#define IS_NOBODYS(id) false
#define GOES_ON(t) true
#define IS_ENDING(id) false
inline paces(id) { skip }
inline enters() { skip }
inline forced() { skip }
#define ENOUGH(t, usual) (usual)
inline checkRest() { skip }
inline clockWentBack() { skip }
inline passesTime() { skip }
inline leavesIt() { skip }
#endif
#ifndef LEFT_HERE
#define LEFT_HERE(t) 0
#endif
