#ifdef STAYS
/* A client in a stay: the hold owns the lock, and the callers of its process come and go in it.
 * `t` is the lock queue, `k` its client. */

/* The lock has been written for `id`: nothing is told to a holder that was granted it by message. */
inline taken(id) {
#ifdef GRANTS_TELL
  tell(id, sub[CLIENT(QUEUE_OF(id))]);
#else
  told = 0;
#endif
#ifdef MEMORY
  if :: h[QUEUE_OF(id)] == id -> unseen[QUEUE_OF(id)] = 0 :: else fi;
#endif
#ifdef TOKENS
  /* Holds are taken no faster than time goes, and what they reserve may be ahead of it. */
  clk++
#endif
}

inline tell(id, counted_) { told = (counted_ -> (KEEPER(QUEUE_OF(id)) -> 2 : 1) : 0) }

/* Redis sees that `id` is the owner. */
inline seen(id) {
#ifdef MEMORY
  if :: h[QUEUE_OF(id)] == id -> unseen[QUEUE_OF(id)] = 0 :: else fi;
#endif
  skip
}

/* The same by a renewal. It tells the server's time, and every later holder's token is above that. */
inline confirmed(id) {
  seen(id);
#ifdef TOKENS
  clk++;
#ifndef FLAW_CLOCK_NOT_RAISED
  if :: last < clk -> last = clk :: else fi
#endif
#endif
  skip
}

/* A waiter tells the holder. Not whose hold it is that waits. */
inline sendRecall(id) {
  if
  :: own != 0 && told > 0 && RECALLS(id) ->
     j = CLIENT(QUEUE_OF(own));
#ifdef FLAW_RECALL_NAMES_THE_ASKER
     leaked = id;
#endif
     x = 0;
     do :: x < heard[j].n && !(heard[j].m[x].recall && heard[j].m[x].hold == own) -> x++ :: else -> break od;
     if
     :: x == heard[j].n && SUBSCRIBED(j) && !deaf[j] ->
        assert(heard[j].n < MMAX);
        heard[j].m[heard[j].n].hold = own; heard[j].m[heard[j].n].age = 0; heard[j].m[heard[j].n].token = 0;
        heard[j].m[heard[j].n].recall = true; heard[j].m[heard[j].n].waits = false;
        heard[j].n++
     :: else
     fi
  :: else
  fi
}

/* What is answered besides: does somebody wait, and the server's time. */
inline answerStay() {
#ifdef FLAW_RENEWALS_SAY_NOTHING
  AT.waits = ((res == OWNER || res == MINE) && qn > 0);
#else
  AT.waits = ((res == OWNER || res == MINE || res == RENEWED) && qn > 0);
#endif
#ifdef TOKENS
  AT.time = (res == OWNER || (res == RENEWED && AT.kind == STAY) -> clk : 0)
#endif
}

/* The answer that a hold is lost is never thrown away while the hold is in use. */
inline keptInView(kind_, hold_, res_) {
  assert(!(kind_ >= GIVEN_UP && (kind_ & 15) >= RENEW && (res_ == GONE || res_ == TAKEN) && hold_ == revoked && IN_STAY(QUEUE_OF(hold_)) && h[QUEUE_OF(hold_)] == hold_))
}

/* A connection of client k was lost, or is back: its stays end as soon as they may. Race: also what
 * is only asked for by now. A recall may have been lost between the command and its answer, which
 * says that nobody waits. */
inline cutOff() {
#if defined(FLAW_TOLD_ONCE_IS_ENOUGH)
#define IS_CUT(j) (IN_STAY(j) && tells[j])
#else
#define IS_CUT(j) (h[j] != 0)
#endif
  j = 0;
  do :: j < QUEUES -> if :: CLIENT(j) == k && IS_CUT(j) -> want[j] = true :: else fi; j++ :: else -> break od
}

inline endStay() {
#ifdef CLAIMS
  asked[t] = 0;
#endif
  sure[t] = 0; want[t] = false; tells[t] = false; idle[t] = 0; inside[t] = 0;
#ifdef MEMORY
  unseen[t] = 0;
#endif
#ifdef TOKENS
  /* What the first command of a hold reserves, an acquire or a yield. */
  reserves[t] = (st[t] == YIELDING -> PASSES : RESERVED);
  spent[t] = 0; upto[t] = 0; asksInRow[t] = 0
#endif
}

inline asks(ttl) {
#ifdef CLAIMS
  if :: asked[t] < ttl -> asked[t] = ttl :: else fi;
#endif
  skip
}

inline comes() { if :: t < ENDLESS -> skip :: else -> todo[t]-- fi }

inline passTime(at) {
  if :: sure[at] > 0 -> sure[at]-- :: else fi;
#ifdef CLAIMS
  if :: asked[at] > 0 -> asked[at]-- :: else fi;
#endif
  if :: idle[at] > 0 -> idle[at]-- :: else fi;
#ifdef MEMORY
  if :: IN_STAY(at) && unseen[at] < FRESH -> unseen[at]++ :: else fi;
#endif
  if :: st[at] == HOLDING && inside[at] < BODY -> inside[at]++ :: else fi
}

/* "Yours" was answered: how long that counts, from the sending. */
inline learns(isTold) {
#ifdef FLAW_FRESH_FROM_RECEIPT
  rem = FRESH;
#else
  rem = (FRESH > ca -> FRESH - ca : 0);
#endif
  if :: rem > sure[t] -> sure[t] = rem :: else fi;
  if :: cw -> want[t] = true :: else fi;
  if :: isTold && cc -> tells[t] = true :: else fi;
#ifdef TOKENS
  if :: cs > upto[t] -> upto[t] = cs :: else fi;
  if :: IS_GRANT -> reserves[t] = PASSES :: else fi;
  /* "Mine" tells a later time than that of the grant, and so nothing. */
  if :: (cr == OWNER || cr == MINE) && IS_AHEAD -> reserves[t] = AHEAD :: else fi
#endif
}

/* A renewal has failed: whether somebody waits is not known. */
inline doubts() {
  want[t] = true
}

/* A grant counts from when it was made, as far as that is known. */
inline granted_() {
  asks(WINDOW);
  rem = (dl[t] + FRESH > WINDOW -> dl[t] + FRESH - WINDOW : 0);
  if :: rem > sure[t] -> sure[t] = rem :: else fi;
#ifdef GRANTS_TELL
  tells[t] = true;
#endif
#ifdef TOKENS
  reserves[t] = (IS_AHEAD -> AHEAD : PASSES);
#endif
  if :: cw -> want[t] = true :: else fi
}

/* A recall is a hint: it counts for the hold that is ours, whatever state that is in, and nothing
 * is sent for any other. */
inline recalled() {
  if
  :: h[t] == ch -> want[t] = true
#ifdef FLAW_RECALLED_IS_LEFT
  :: h[t] != ch -> send(LEAVE, ch, 0)
#endif
  :: else
  fi
}

inline begins() {
  inside[t] = 0; idle[t] = 0;
  if
  :: then == NOTHING && ck == STAY ->
     if :: FREELY(t) || passes[t] >= PASSES -> skip :: else -> passes[t]++ fi;
#ifdef TOKENS
     spent[t]++; asksInRow[t] = 0
#endif
  :: else
  fi
}

/* A caller of this process gets the lock, and nobody is asked. */
inline turn() {
  printf("lock queue %d: another caller, by hold %d\n", t, h[t]);
  comes();
  if :: FREELY(t) || passes[t] >= PASSES -> skip :: else -> passes[t]++ fi;
#ifdef FLAW_LOSS_IS_DROPPED
  disown(); busy[t] = false;
#endif
#ifdef FLAW_LAPSE
  if :: dl[t] == 0 -> dl[t] = 1 :: else fi;
#endif
#ifdef MEMORY
  /* No turn begins from memory when what Redis saw last is too old. */
  assert(unseen[t] < FRESH);
#endif
#ifdef TERMS
  /* An explicit lease, of the length of the window: it gets what it asks for. */
  assert(dl[t] >= WINDOW);
#endif
  st[t] = HOLDING; inside[t] = 0; idle[t] = 0;
#ifdef TOKENS
  spent[t]++; asksInRow[t] = 0;
  checkTurn()
#endif
}

/* The same where a turn has to ask. It waits for the answer. */
inline ask() {
  printf("lock queue %d: a caller has hold %d asked for\n", t, h[t]);
  comes();
  st[t] = CLAIMING; disown(); busy[t] = false; idle[t] = 0; inside[t] = 0;
  asks(WINDOW);
  send(STAY, h[t], 0)
#ifdef TOKENS
  ; asksInRow[t]++; assert(asksInRow[t] <= 1)
#endif
}

/* Nothing that was asked for has come of it, or somebody waits: the stay ends, and its caller queues. */
inline unmet() {
#ifdef FLAW_ASKS_FOR_EVER
  asks(WINDOW); send(STAY, h[t], 0); asksInRow[t]++; assert(asksInRow[t] <= 1)
#else
  if
  :: SUBSCRIBED(k) ->
     co = h[t];
     newHold();
     send(YIELD, fresh, co);
     fresh_(YIELDING);
     asks(LEASE_OF(fresh))
  :: else -> send(RELEASE, h[t], 0); then = SEEK
  fi
#endif
}

inline keep_() {
  printf("lock queue %d keeps hold %d\n", t, h[t]);
  st[t] = KEPT; idle[t] = LINGER; inside[t] = 0;
#ifdef FLAW_IDLE_FLAG
  send(SET_IDLE, h[t], 0);
#endif
  if :: !tells[t] && !busy[t] -> busy[t] = true; asks(WINDOW); send(STAY, h[t], 0) :: else fi
}

#ifdef CAN_FORGE
/* Somebody publishes on the channel of client k. */
inline forge(id, isRecall) {
  printf("somebody publishes for hold %d at client %d\n", id, k);
  heard[k].m[0].hold = id; heard[k].m[0].age = BACK; heard[k].m[0].token = TOKEN;
  heard[k].m[0].recall = isRecall; heard[k].m[0].waits = false;
  heard[k].n = 1
}
#endif

/* The lock's key is deleted, and its holder goes on. */
inline lose() {
  printf("redis: the lock is deleted\n");
  revoked = own;
#ifdef TOKENS
  /* Later than all tokens that were given, and those that are reserved. */
  if :: clk < last -> clk = last :: else fi;
  last = 0;
#endif
  free()
}

#ifdef TOKENS
/* A turn from memory: its token is above all before, and, also when its lock was lost, below that
 * of any later holder. */
inline checkTurn() {
  if
  :: h[t] != revoked -> checkToken()
  :: else -> assert(tok == 0 || own == h[t] || TURN_TOKEN(t) < tok); if :: TURN_TOKEN(t) > best -> best = TURN_TOKEN(t) :: else fi
  fi
}
#endif

proctype Stay(byte t) {
  byte k = CLIENT(t);
end: do
  :: d_step { IS_HERE(t) && todo[t] > 0 && MAY_BEGIN(t) -> turn(); check() }
  :: d_step { IS_HERE(t) && st[t] != LEAVING && todo[t] > 0 && MAY_ASK(t) && !MAY_BEGIN(t) && ROOM -> ask(); check() }
  :: d_step { IS_HERE(t) && st[t] == HOLDING && todo[t] > 0 && SUBSCRIBED(k) && ROOM -> yield(); check() }
  :: d_step { IS_HERE(t) && st[t] == HOLDING && MAY_KEEP(t) && ROOM -> keep_(); check() }
  :: d_step { IS_HERE(t) && st[t] == HOLDING && MAY_COME_BACK(t) -> st[t] = LEAVING; inside[t] = 0; check() }
  :: d_step { IS_HERE(t) && st[t] != HOLDING && dl[t] > 0 && ROOM -> unlock(); check() }
  :: d_step { IS_HERE(t) && st[t] == HOLDING && !busy[t] && sure[t] == 0 && ROOM -> busy[t] = true; asks(WINDOW); send(STAY, h[t], 0); check() }
#ifdef CLAIMS
  :: d_step { IS_HERE(t) && st[t] == HOLDING && !busy[t] && asked[t] < LEASE && ROOM -> busy[t] = true; asks(LEASE); send(RENEW, h[t], 0); check() }
#endif
#ifdef CAN_CRASH_KEPT
  :: d_step { FAULT && (st[t] == KEPT || st[t] == LEAVING) -> faults--; crash(); t = k; sub[k] = false; check() }
#endif
#ifdef CAN_DROP
  :: d_step { FAULT && heard[k].n > 0 -> faults--; unhear(); check() }
#endif
#if defined(TOKENS) && defined(CAN_CLOCK)
  :: d_step { t == 0 && faults > 0 && clk > 12 -> faults--; clk = clk - 3 }
  :: d_step { t == 0 && faults > 0 && last > 0 && last < CLOCKS -> faults--; last = last + 3 }
#endif
#ifdef CAN_FORGE
  :: d_step { FAULT && heard[k].n == 0 && own != 0 -> faults--; forge(own, true); check() }
  :: d_step { FAULT && heard[k].n == 0 && leaked != 0 -> faults--; forge(leaked, false); check() }
#endif
  od
}
#endif
