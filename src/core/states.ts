import { nounOf } from "../api/wording.ts";
import { FIRST_REPLY, KEEPER_REPLY, LEASE_TIME } from "../defaults.ts";
import { type AttemptAnswer, foreignFormat, unavailable } from "../redis/replies.ts";
import type { Attempt } from "./attempt.ts";
import type { Grant, Hold } from "./lease/hold.ts";
import type { SharedLease } from "./lease/shared-lease.ts";
import type { Line } from "./line.ts";
import type { LockKind } from "./lock-kind.ts";
import { reserved } from "./next.ts";
import type { Port } from "./port.ts";
import type { RecheckGroup } from "./recheck-group.ts";
import type { RedisHealth } from "./redis-health.ts";
import { backOff } from "./schedule.ts";
import type { Waiter } from "./waiter.ts";

/**
 * A state of a place, and what it does on each event: one of the rows below.
 *
 * | state | true in Redis | what ends it |
 * |---|---|---|
 * | idle | nothing of ours | a caller comes → asking |
 * | asking | unknown: a command is under way | owner → owned · queued → parked · busy → asking, to queue, or subscribing · failed → apart |
 * | apart | nothing of ours; callers wait | a time → asking |
 * | subscribing | the same | the subscription, or a time → asking |
 * | parked | the hold is queued; a re-check may be under way | a grant, or an answer "owner" → owned · gone → asking · no caller left → idle |
 * | claiming | the lock is ours; a renewal is under way, and a caller gets it after that | its answer → owned or asking |
 * | owned | the lock is ours, and a caller has it | the caller leaves → owned, claiming, resting, leaving, kept, or the hold is released · lost → withdrawn |
 * | resting | the lock is ours, and a caller gets it after a turn of the event loop | the turn → owned, claiming, or the hold is released |
 * | leaving | the lock is ours, and no caller waits | a caller → owned, claiming, resting · the turn of the event loop → the hold is released |
 * | kept | the lock is ours, at most for the window; no caller waits, nothing was sent | a caller → owned, claiming, resting · wanted, its time over, too many kept, no subscription, the client closes → the hold is released |
 */
export interface State {
  readonly word: string;
  /** Is the lock ours? */
  readonly isOurs: boolean;
  /** A caller came, or needs one more answer. */
  came(p: Place, caller: Waiter): void;
  /** The command under way was answered: another client holds the lock. */
  held(p: Place, answer: Held, attempt: Attempt): void;
  /** The hold is neither queued nor the owner; or Redis ran the command later than it may. */
  unplaced(p: Place, is: "gone" | "stale"): void;
  /** No answer: its effect is unknown. */
  failed(p: Place, error: unknown): void;
  /** A message: the hold is the owner. */
  granted(p: Place, grant: Grant): void;
  /** Its time has come, messages may have been missed, or the connection is back. */
  gap(p: Place): void;
  /** A caller has left the line without the lock. */
  left(p: Place): void;
}

type Held = AttemptAnswer & { is: "held" };

const ask = (p: Place): void => p.ask();

function granted(p: Place, grant: Grant): void {
  // Its entry has asked for a token for each local hand-off.
  if (p.kind.asksTwice) {
    p.askAgain();
    return;
  }
  if (p.hold) p.hold.reserved = reserved(p.hold.mayPass, grant.token !== grant.at, p.kind);
  p.take(grant, null, 0);
}

/** Queued, or not: for callers that do not wait, or before the subscription. */
function held(p: Place, { ttl, position, flag }: Held, attempt: Attempt): void {
  const { line, resource, context, kind } = p;
  const { hold } = attempt;
  // The holder is asked by a place in the queue; for that its answer must be received.
  if (flag !== 2) line.refuseAsking();
  else if (position !== null) line.awaitHolder(KEEPER_REPLY);
  else line.reprieve(resource.isHeard && !kind.sharing ? KEEPER_REPLY : FIRST_REPLY);
  if (line.first) context.selfWait.look(resource, line.first);
  line.tellBusy(hold.sent.mono);
  const { first } = line;
  if (position !== null && first) {
    p.to(PARKED, hold);
    p.position = position;
    resource.places.add(p);
    p.sleepFor(attempt, ttl);
    p.reconsider();
    // RACE: a caller that does not wait has come since, and the holder may be gone by now. RACE: or one
    // that waits, and the holder was only asked whether it is in use.
    if (line.unanswered > 0 || (attempt.nonce !== null && !line.isAskingOnly)) p.recheck();
    return;
  }
  if (position !== null) context.leave(kind, hold);
  else context.inbox.forget(hold);
  if (!first) p.stop();
  else if (line.unanswered > 0) {
    // Subscribe meanwhile, so that tryLock() calls that keep arriving do not delay callers that
    // wait.
    if (line.waiting > 0) resource.listen();
    line.awaitAgain();
    p.ask();
  } else if (!resource.mayQueue) p.subscribe(first);
  else p.ask();
}

/** A re-check was answered: it is still queued. */
function stillHeld(p: Place, { position, ttl }: Held, attempt: Attempt): void {
  const { line } = p;
  p.position = position;
  p.sleepFor(attempt, ttl);
  line.tellBusy(attempt.sent.mono);
  if (line.unanswered > 0) p.recheck();
  else p.state.left(p);
}

/** A caller of this process has the lock: that is an answer. */
function heldHere(p: Place, caller: Waiter): void {
  const { line, resource } = p;
  if (caller.isUnanswered) {
    if (p.isHeldHere()) line.tellBusy();
    // RACE: the event loop was blocked past its deadline, and no timer has run yet.
    else p.holder?.expire();
  }
  if (p.holder && caller.waits) {
    resource.listen();
    resource.awaitSelfWait(caller);
  }
}

/** No caller is inside, and this one could not enter at once. */
function enter(p: Place, { batchedTry }: Waiter): void {
  if (batchedTry && p.hold) batchedTry.hold = p.hold;
  p.resume();
}

/** What is left of it must go: a first copy of the command may have run in time. */
function askAnew(p: Place): void {
  p.drop();
  p.ask();
}

function unplaced(p: Place, is: "gone" | "stale"): void {
  if (is === "stale") {
    p.recheck();
    return;
  }
  p.resource.selfTest();
  if (p.hold) p.context.leave(p.kind, p.hold);
  // RACE: whatever removed this entry may have removed those after it.
  p.lookBefore(0);
  p.ask();
}

function recover(p: Place, error: unknown): void {
  const { line, name, kind } = p;
  p.drop();
  // A client with another format holds it. A caller that may wait treats it as any other holder.
  const isForeign = foreignFormat(error) !== null;
  line.refuseUnanswered(() => unavailable(name, "", error, nounOf(kind)), isForeign);
  if (isForeign) line.tellBusy();
  p.retry();
}

function sleepOn(p: Place, error: unknown): void {
  const { line, name, kind, health } = p;
  p.sleep(backOff(health.failures));
  line.refuseUnanswered(() => unavailable(name, "", error, nounOf(kind)));
  p.state.left(p);
}

function stopIfAlone(p: Place): void {
  if (p.line.first) {
    p.reconsider();
    return;
  }
  // The entry may stay until it expires, and be granted at its end.
  p.hold?.asks(LEASE_TIME);
  p.drop();
  p.stop();
}

const nothing = (): void => {};

const NOTHING: Omit<State, "word"> = {
  isOurs: false,
  came: nothing,
  held: nothing,
  unplaced: nothing,
  failed: nothing,
  granted: nothing,
  gap: nothing,
  left: nothing,
};

export const IDLE: State = {
  ...NOTHING,
  word: "idle",
  came: (p) => {
    if (!p.resource.isGathering) p.ask();
  },
};
export const ASKING: State = {
  ...NOTHING,
  word: "asking",
  held,
  unplaced: askAnew,
  failed: recover,
  granted,
};
export const APART: State = { ...NOTHING, word: "apart", came: ask, gap: ask, left: stopIfAlone };
export const SUBSCRIBING: State = { ...APART, word: "subscribing" };
export const PARKED: State = {
  ...NOTHING,
  word: "parked",
  came: (p) => {
    // RACE: the holder was only asked whether it is in use, and does not know that a caller waits.
    const isQuestion = p.line.first?.isAsking && !p.line.isAskingOnly;
    if (p.line.unanswered > 0 || isQuestion) p.recheck();
  },
  held: stillHeld,
  unplaced,
  failed: sleepOn,
  granted,
  gap: (p) => {
    if (p.resource.places.isFirst(p)) p.recheck();
  },
  left: stopIfAlone,
};
const OURS: typeof NOTHING = { ...NOTHING, isOurs: true };
export const CLAIMING: State = { ...OURS, word: "claiming" };
export const OWNED: State = { ...OURS, word: "owned", came: heldHere };
export const RESTING: State = { ...OURS, word: "resting" };
export const LEAVING: State = { ...OURS, word: "leaving", came: enter };
export const KEPT: State = { ...OURS, word: "kept", came: enter };

/** What a state needs of its place: see there. */
interface Place {
  readonly kind: LockKind;
  readonly name: string;
  readonly context: Port;
  readonly health: RedisHealth;
  readonly line: Line;
  readonly resource: {
    readonly isHeard: boolean;
    readonly mayQueue: boolean;
    readonly places: RecheckGroup;
    readonly isGathering: boolean;
    listen(): void;
    selfTest(): void;
    awaitSelfWait(caller: Waiter): void;
  } & Parameters<Port["selfWait"]["look"]>[0];
  readonly state: State;
  readonly hold: Hold | null;
  readonly holder: SharedLease | null;
  position: number | null;
  isHeldHere(): boolean;
  ask(): void;
  recheck(): void;
  reconsider(): void;
  subscribe(first: Waiter): void;
  retry(): void;
  take(grant: Grant, sent: null, flag: 0): void;
  askAgain(): void;
  drop(): void;
  stop(): void;
  resume(): void;
  to(state: State, hold: Hold): void;
  sleepFor(attempt: Attempt, ttl: number): void;
  sleep(ms: number): void;
  lookBefore(at: number): void;
  lookAgain(): void;
}
