import { LEASE_TIME } from "../defaults.ts";
import { type LockLostError, nounOf } from "../errors.ts";
import type { Grant, Hold } from "../lease/hold.ts";
import type { LeaseOwner, SharedLease } from "../lease/shared-lease.ts";
import {
  type AttemptAnswer,
  foreignFormat,
  type ReleaseAnswer,
  type RenewAnswer,
  unavailable,
  type YieldAnswer,
} from "../redis/replies.ts";
import type { Instant } from "../util/clock.ts";
import { Attempt, type Yielded } from "./attempt.ts";
import { type Ask, BLOCKED, type LockKind } from "./lock-kind.ts";
import { Looking } from "./looking.ts";
import type { Outrun } from "./outrun.ts";
import type { ParkingPlace } from "./parking.ts";
import type { Services } from "./services.ts";
import type { Stay } from "./stay.ts";
import type { Waiter } from "./waiter.ts";

/** The lock that is acquired, and what becomes of it. `LockQueue` is this. */
export interface AcquisitionQueue extends ParkingPlace {
  /** Is the lock unlikely to be free, because other callers of this client wait for it at places of their own? */
  readonly isCrowded: boolean;
  /** What the lock's value is to say of this process. */
  readonly told: Ask["told"];
  /** May a hold for this caller stay with this process? Then it is acquired for the window only. */
  mayLinger(head: Waiter): boolean;
  /** How many tries of callers that will queue are under way; one of them was answered. */
  firstTries: number;
  firstTried(): void;
  /** The lock is ours: by an answer to the acquisition (`isDirect`), or by a grant message. */
  found(one: Acquisition, hold: Hold, isDirect: boolean, grant: Grant): void;
  vacated(one: Acquisition, lease: SharedLease): Promise<void>;
  lost(one: Acquisition, lease: SharedLease, error: LockLostError): void;
  renewed(one: Acquisition, hold: Hold, sent: Instant, answer: RenewAnswer, told: Ask["told"] | null): void;
  rested(stay: Stay): void;
  recalled(one: Acquisition, nonce: string | null, isQuestion: boolean): void;
  late(one: Acquisition, waiter: Waiter): void;
  /** No caller is left. */
  left(one: Acquisition): void;
}

/**
 * The way of one hold from wanted to owned, for the callers that it serves: all of a process at one lock, or one of a fair
 * lock. Protects them from what comes late: an answer counts only for the command that is awaited, a grant only for its own
 * hold (R3), and what nobody awaits is given back. One command of a hold is under way at a time. `Parking` has the states.
 */
export class Acquisition extends Looking<AcquisitionQueue> implements LeaseOwner {
  /** What the callers of this process have of the lock. */
  lease: SharedLease | null = null;
  outrun: Outrun | null = null;

  get kind(): LockKind {
    return this.queue.kind;
  }

  get services(): Services {
    return this.queue.services;
  }

  /**
   * Is the lock being asked for, or will be as soon as a caller comes: do new callers share a first command? RACE: also while it is
   * ours and no caller here has it: until Redis answers about it no process holds it, and a new caller may be the one that gets it.
   */
  get isAsking(): boolean {
    if (this.state === "owned") return !this.lease?.held;
    return this.state === "asking" || this.isUnsure || this.isParkedFor("release");
  }

  // ---- asking

  /** Asks for the first caller with a new hold. */
  start(): void {
    const { first: head, queue } = this;
    if (!head) {
      this.stop();
      return;
    }
    const isPatient = this.patient > 0;
    const mode = isPatient && queue.channel.mayQueue ? "queue" : "try";
    // RACE: at a fair lock no caller queues before one that came earlier and whose try is not answered yet, or which is told
    // of the subscription in a moment. And a thousand callers that come at once need not all try before they queue.
    const isNew = this.state === "idle";
    const isHeldBack = queue.firstTries > 0 || (isNew && queue.subscribing > 0);
    if (isPatient && (mode === "queue" ? queue.isSolitary && isHeldBack : isNew && queue.isCrowded)) {
      this.subscribe(head);
      return;
    }
    this.ask(queue.services.newHold(queue.kind, queue.name, this, head.terms.label), mode, head);
    if (isPatient) queue.channel.prepare(mode);
  }

  /** Ends a hold in favour of other processes, and queues a new one. Resolves with what became of the old one; null: it ended. */
  yield(old: Hold, head: Waiter): Promise<ReleaseAnswer | null> {
    const hold = this.services.newHold(this.kind, this.queue.name, this, head.terms.label);
    return new Promise((tell, fail) => {
      this.ask(hold, "yield", head, { hold: old, tell, fail });
    });
  }

  protected ask(hold: Hold, mode: Ask["mode"], head: Waiter, yielded: Yielded | null = null): void {
    const { kind, health, services } = this.queue;
    if (head.terms.linger > 0 && !this.outrun && (mode === "try" || mode === "queue"))
      hold.lingers = this.queue.mayLinger(head);
    const told = hold.lingers ? 2 : this.queue.told;
    const channel = this.patient > 0 ? this.queue.channel : null;
    const attempt = new Attempt(this, hold, mode, head, told, services.stays.window, channel, this.position);
    if (this.wakes && attempt.isHeard) attempt.wakes = this.wakes.count;
    attempt.isWoken = this.wakes?.asks() ?? false;
    attempt.yielded = yielded;
    attempt.isFirst = mode === "try" && channel !== null;
    if (head.isAsking || head.link) attempt.nonce = this.nonceFor(attempt);
    if (attempt.isFirst) this.queue.firstTries++;
    if (mode !== "again") this.to("asking", hold);
    this.attempt = attempt;
    health.askedAt ||= attempt.sent.mono;
    if (yielded && kind.yield) kind.yield(yielded.hold, hold, attempt, attempt);
    else if (attempt.nonce !== null) this.askFirst(attempt);
    else kind.attempt(hold, attempt, attempt);
  }

  answered(attempt: Attempt, answer: AttemptAnswer | YieldAnswer): void {
    const { hold, mode, sent, yielded } = attempt;
    const { health } = this.queue;
    const isAwaited = this.#isAwaited(attempt);
    health.askedAt = 0;
    health.saidAt = sent.mono;
    if (health.failure !== undefined) health.answered();
    if (answer.is === "held") this.wakes?.met(sent.mono, attempt.isWoken, answer);
    if (!isAwaited) {
      // RACE: granted by message before this reply was read. The grant counts, and the hold has its own end. RACE: or it has
      // come to its end, and a copy of the command that Redis ran behind that has taken the lock once more.
      if (answer.is === "owner") this.#leaveIfOver(hold);
    } else if ("clock" in answer) {
      // Of the hold that was to be yielded: nothing was queued.
      this.queue.services.inbox.forget(hold);
      this.start();
    } else if (answer.is === "owner") {
      if (mode === "again") this.lookedOwned(answer.already);
      this.#own(answer, sent, answer.isTold ? attempt.told : 0);
    } else if (answer.is === "held") {
      hold.answered(sent, answer.at);
      if (mode !== "again") this.held(attempt, answer);
      else this.lookedHeld(attempt, answer);
    } else if (answer.is === "blocked") this.#refused(attempt, BLOCKED);
    else if (answer.is === "refused") this.#refused(attempt, answer.error);
    else this.#unplaced(attempt, answer.is);
    yielded?.tell("clock" in answer ? answer : null);
    if (attempt.isFirst) this.queue.firstTried();
  }

  /** Nothing was done, for a reason that concerns this caller only: callers that share its command ask for themselves. */
  #refused({ hold, head }: Attempt, error: Error): void {
    // RACE: an earlier copy of a command that queues may have met what was true then.
    if (error === BLOCKED) this.queue.services.inbox.forget(hold);
    else this.queue.services.leave(this.kind, hold);
    this.refuse(head, error);
    this.asksAgain();
    this.start();
  }

  /** "gone": neither queued nor ours. "stale": Redis ran the command later than it may. */
  #unplaced({ hold, mode }: Attempt, is: "gone" | "stale"): void {
    if (mode === "again" && is === "stale") {
      this.lookAgain();
      return;
    }
    if (mode === "again") {
      this.queue.channel.selfTest();
      // RACE: what took this entry may have taken those behind it, so the client's next hold looks at once.
      this.lookBefore(0);
    }
    // The server's clock is known now. A first copy of the command may have been in time, and owns the lock.
    this.queue.services.leave(this.kind, hold);
    this.start();
  }

  failed(attempt: Attempt, error: unknown): void {
    const { hold, mode, yielded } = attempt;
    const { health } = this.queue;
    const isAwaited = this.#isAwaited(attempt);
    health.failed(error);
    if (yielded) this.queue.services.leave(this.kind, yielded.hold);
    if (!isAwaited) {
      // What the last copy has done nobody knows. A hold that was granted by message has its own end.
      this.#leaveIfOver(hold);
      yielded?.tell(null);
    } else if (mode === "again") this.lookFailed(error);
    else {
      this.queue.services.leave(this.kind, hold);
      // Another version holds it: a caller that may wait waits until that is over, as for any other holder.
      const isForeign = foreignFormat(error) !== null;
      const refusal = (): Error => unavailable(this.queue.name, "", error, nounOf(this.kind));
      this.refuseAll(refusal, isForeign ? "hasty" : "unanswered");
      if (isForeign) this.tellBusy();
      this.retry();
      yielded?.fail(error);
    }
    if (attempt.isFirst) this.queue.firstTried();
  }

  #isAwaited(attempt: Attempt): boolean {
    if (this.attempt !== attempt) return false;
    this.attempt = null;
    return attempt.mode === "again"
      ? this.hold === attempt.hold && this.state === "parked"
      : this.state === "asking";
  }

  /** RACE: what readers share is theirs until they have left, and expected for as long, whatever this acquisition asks for by then. */
  #leaveIfOver(hold: Hold): void {
    const { services } = this.queue;
    if (this.hold !== hold && !services.inbox.expected.has(hold.id)) services.leave(this.kind, hold);
  }

  // ---- owning

  /** A grant message. False: its hold is not current, so it must be left (R3). */
  granted(id: string, grant: Grant): boolean {
    const { hold, state } = this;
    if (hold?.id !== id) return false;
    // A late message about a hold that a re-check had told of already changes nothing.
    if ((state === "asking" || state === "parked") && hold.fits(grant)) this.#own(grant, null, 0);
    return true;
  }

  /** It was taken away by force; perhaps before the answer that gave it was read. */
  revoked(id: string, by: string | null): void {
    if (this.hold?.id !== id) return;
    this.hold.isRevoked = true;
    if (this.lease) this.lease.lose("revoked", by);
    else if (this.stay) this.queue.rested(this.stay);
  }

  /** `sent`, `told`: of the command that is answered; null: it is a message. */
  #own(grant: Grant, sent: Instant | null, told: Ask["told"]): void {
    const { hold } = this;
    if (!hold) return;
    this.to("owned", hold);
    this.attempt = null;
    this.tries = 0;
    this.wakes?.owned();
    hold.owned(grant, sent, told);
    this.queue.found(this, hold, sent !== null, grant);
  }

  vacated(lease: SharedLease): Promise<void> {
    return this.queue.vacated(this, lease);
  }

  lost(lease: SharedLease, error: LockLostError): void {
    this.queue.lost(this, lease, error);
  }

  renewed(hold: Hold, sent: Instant, answer: RenewAnswer): void {
    this.queue.renewed(this, hold, sent, answer, null);
  }

  /** Somebody wants the lock. */
  recalled(id: string, nonce: string | null, isQuestion: boolean): void {
    if (this.hold?.id === id) this.queue.recalled(this, nonce, isQuestion);
  }

  wanted(lease: SharedLease): AbortSignal {
    return this.services.wanted.signalOf(lease, this.kind);
  }

  late(waiter: Waiter): void {
    this.queue.late(this, waiter);
  }

  /** Its signal aborted, or its client closes: it gets its answer at once. */
  leave(waiter: Waiter, reason: unknown): void {
    this.refuse(waiter, reason);
    this.deserted();
  }

  /** The last caller may have left. */
  deserted(): void {
    if (this.first) return;
    // A caller that comes while the last try is still under way is no old waiter.
    this.tries = 0;
    if (this.state !== "parked") return;
    const { hold } = this;
    // An entry may stand for all of its time, and be granted at its end.
    hold?.asks(LEASE_TIME);
    if (hold) this.queue.services.leave(this.kind, hold);
    this.stop();
  }

  stop(): void {
    this.attempt = null;
    if (this.state !== "idle") this.to("idle");
    this.queue.left(this);
  }
}
