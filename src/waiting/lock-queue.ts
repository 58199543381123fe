import { SPIN_LAST_TRY, WAKE_SPREAD } from "../defaults.ts";
import type { LockLostError } from "../errors.ts";
import type { Grant, Hold } from "../lease/hold.ts";
import { refused, releaseOutcome, unconfirmed } from "../lease/release-outcome.ts";
import { type LeaseOwner, SharedLease, told } from "../lease/shared-lease.ts";
import { unavailable, type YieldAnswer } from "../redis/replies.ts";
import { now } from "../util/clock.ts";
import { CallTimer } from "../util/timers.ts";
import { Acquisition } from "./acquisition.ts";
import type { LockKind } from "./lock-kind.ts";
import type { LockManager } from "./lock-manager.ts";
import { Outrun } from "./outrun.ts";
import { Place } from "./place.ts";
import { handOver, isEnough, isTooMuch, lastTry } from "./schedule.ts";
import { selfWaitAt, selfWaiter, warnSelfWait } from "./self-wait.ts";
import { assertMove, QUEUE_MOVES, type QueueState } from "./states.ts";
import type { Waiter } from "./waiter.ts";

/**
 * The turn of this process at one lock: its callers in order, and the one hold by which Redis knows them.
 *
 * | state | true in Redis | leaves it by |
 * |---|---|---|
 * | idle | nothing of ours | a caller → searching |
 * | searching | see Acquisition | found → holding, or claiming first · nobody is left → idle |
 * | claiming | we own it for the grant window | renewed → holding · gone, taken, failed → searching |
 * | holding | we own it | unlock: a pass → holding or claiming, yield → yielding, release → searching · lost → searching |
 * | yielding | the old hold is ours until the script ran, then the new one is queued or the owner | owner or a grant → holding · held, or not ours any more → searching |
 */
export class LockQueue implements LeaseOwner {
  readonly kind: LockKind;
  readonly name: string;
  readonly search: Acquisition;
  readonly #room: LockManager;
  readonly #place: Place;
  /** Rings when a caller has waited for its own client for longer than some leases. Hardly any turn needs it. */
  #alarm: CallTimer | null = null;
  /** The last caller whose lease was over before it could be given. */
  #outran: Outrun | null = null;
  #state: QueueState = { at: "idle" };

  constructor(kind: LockKind, name: string, room: LockManager) {
    this.kind = kind;
    this.name = name;
    this.#room = room;
    this.#place = new Place(kind, name, room, this);
    this.search = new Acquisition(this.#place, this);
  }

  /** Is the lock held, or may Redis have something of this turn that it has not answered about? */
  get isUnderWay(): boolean {
    if (this.#state.at === "holding") return true;
    const hold = "hold" in this.#state ? this.#state.hold : this.search.hold;
    return hold !== null && this.#room.commands.mayHaveReached(hold.sent.mono);
  }

  /** Its callers in this process, the first one first. */
  get waiters(): Iterable<Waiter> {
    return this.#place.line;
  }

  join(waiter: Waiter): void {
    const { at } = this.#state;
    // RACE 14: it was held when it was asked for, a while ago. Who would hardly wait is told what is true now; and so is
    // everybody while nothing is heard yet.
    const isDoubted = this.search.isUnplaced && waiter.wait <= SPIN_LAST_TRY;
    const asks = at === "idle" || this.search.isAsking || isDoubted;
    // Somebody of this process waits or holds: no command is needed to know that the lock is not free.
    if (!asks && waiter.wait === 0) {
      waiter.give(null);
      return;
    }
    this.#place.line.add(waiter, asks);
    if (at === "idle" || this.search.isUnsure || isDoubted) this.#seek();
    else if (this.kind.pause && this.search.isUnplaced) this.search.lookBefore(lastTry([waiter]));
    // RACE 14 too, but with everybody else: a try right behind our release would keep other processes off for as long as
    // callers come here. Its message may be lost.
    else if (this.search.isFreed) this.search.lookBefore(performance.now() + WAKE_SPREAD);
    else if (at === "holding") {
      this.#place.listenAhead();
      this.#watchSelfWait(waiter);
    }
  }

  /** Its signal aborted, or its client closes: it gets its answer at once. */
  leave(waiter: Waiter, reason: unknown): void {
    this.#place.line.refuse(waiter, reason);
    this.search.deserted();
  }

  /** Those that have waited since before then. */
  leaveSince(before: number, reason: () => unknown): void {
    for (const waiter of [...this.#place.line]) if (waiter.since < before) this.leave(waiter, reason());
  }

  leaveAll(reason: () => unknown): void {
    this.#place.line.refuseAll(reason);
    if (this.#state.at === "claiming") this.#state.waiter.refuse(reason());
    this.search.deserted();
  }

  /** A caller's time is up: of its wait, or of its first command. */
  late(waiter: Waiter): void {
    const { line, health } = this.#place;
    if (this.#outran?.waiter === waiter) {
      line.refuse(waiter, this.#outran.refusal(this.name));
    } else if (waiter.answerBy !== Number.POSITIVE_INFINITY || health.isDoubtful) {
      const what = "Redis did not answer while this call waited";
      line.refuse(waiter, unavailable(this.name, what, health.failure ?? this.#room.commands.trouble()));
    } else line.give(waiter, null);
    this.search.deserted();
  }

  /** A grant message. False: its hold is not current, so it must be left (R3). */
  granted(id: string, grant: Grant): boolean {
    const state = this.#state;
    if (!("hold" in state)) return this.search.granted(id, grant);
    if (state.hold.id !== id) return false;
    if (state.at === "yielding" && state.hold.fits(grant)) {
      state.hold.owned(grant);
      this.found(state.hold, false);
    }
    // RACE 3: else a re-check had told it already, and its late message changes nothing.
    return true;
  }

  /** Somebody took it away by force; perhaps before the answer that gave it was read. */
  revoked(id: string, by: string | null): void {
    const hold = "hold" in this.#state ? this.#state.hold : this.search.hold;
    if (hold?.id !== id) return;
    hold.isRevoked = true;
    if (this.#state.at === "holding") this.#state.tenure.lose("revoked", by);
  }

  /** To the first caller, as it is or after a claim. */
  found(hold: Hold, isDirect: boolean): void {
    const head = this.#place.line.first;
    const isOver = hold.validity.left() <= 0 || hold.isRevoked;
    if (!head || isOver || isTooMuch(hold, head.terms, this.#room.window)) {
      // Nobody wants it any more; or the message was read so late that somebody else may have it; or it was asked for by
      // somebody with a much longer lease, who has left.
      this.#place.withdraw(hold);
      if (head && isDirect && !hold.isRevoked && hold.validity.left() <= 0)
        this.#outrun(head, now().mono - hold.validity.sent.mono);
      else this.#seek();
    } else if (!this.kind.isConfirmed && isEnough(hold, head.terms, this.#room.window, isDirect)) {
      this.#give(hold, head);
    } else void this.#claim(hold, head);
  }

  /** Raises a granted lock to its full lease before the caller gets it. He was granted in time, so his wait is over. */
  async #claim(hold: Hold, waiter: Waiter): Promise<void> {
    const { health, line } = this.#place;
    this.#to({ at: "claiming", hold, waiter });
    line.remove(waiter);
    const sent = now();
    hold.asks(waiter.terms.lease);
    health.sending();
    try {
      const answer = await this.kind.claim(hold, waiter.terms.lease, this.#room.window / 3);
      health.answered();
      const isInTime = answer.is === "renewed" && hold.renewed(sent, answer) && hold.validity.left() > 0;
      if (isInTime && !hold.isRevoked) {
        if (waiter.settled) this.found(hold, false);
        else this.#give(hold, waiter);
        return;
      }
      // RACE 5: the hold may have been granted again. A claim in vain is followed by leaving it.
      const isOver = !hold.isRevoked && hold.validity.left() <= 0;
      this.#place.withdraw(hold);
      this.#putBack(waiter);
      if (isOver && waiter.listed) this.#outrun(waiter, now().mono - sent.mono);
      else this.#seek();
    } catch (error) {
      this.#place.withdraw(hold);
      const refusal = this.kind.isConfirmed ? refused(this.name, error) : null;
      if (refusal) {
        health.answered();
        waiter.refuse(refusal());
        // For a caller that has waited all the while the answer is the same. Asked one by one, the last of n would hear it
        // after n times the replicas' timeout.
        this.#room.refuseSince(this, sent.mono, refusal);
        this.#seek();
        return;
      }
      health.failed(error);
      this.#putBack(waiter);
      this.#to({ at: "searching" });
      this.search.retry();
    }
  }

  /** The lock was given, and the lease of this caller was over when the answer came: tried again after a pause, for a while. */
  #outrun(waiter: Waiter, took: number): void {
    const { line, health } = this.#place;
    if (this.#outran?.waiter !== waiter) this.#outran = new Outrun(waiter);
    const outran = this.#outran;
    this.#to({ at: "searching" });
    if (outran.add(took)) {
      // Every caller that waits here with such a lease would fare the same. One with a longer lease has its turn at once.
      for (const other of [...line])
        if (other.terms.lease <= waiter.terms.lease)
          line.refuse(other, outran.refusal(this.name, other.terms.lease));
      this.search.start();
      return;
    }
    health.failed(outran.refusal(this.name));
    this.search.retry(outran.tries);
  }

  /** The claim brought nothing: first in line again. If his time is over, his alarm rings at once. */
  #putBack(waiter: Waiter): void {
    if (!waiter.settled) this.#place.line.putBack(waiter);
  }

  #give(hold: Hold, waiter: Waiter): void {
    const { line } = this.#place;
    const tenure = new SharedLease(hold, waiter.terms, this, waiter);
    this.#to({ at: "holding", hold, tenure });
    this.#outran = null;
    this.#room.watchdog.watch(tenure, this.kind);
    line.give(waiter, tenure);
    line.tellBusy();
    if (line.first) this.#place.listenAhead();
    const waited = performance.now() - waiter.since;
    this.#room.events.tell("acquire", () => ({ ...told(tenure), waited }));
  }

  vacated(tenure: SharedLease): Promise<void> {
    const { hold } = tenure;
    this.#room.watchdog.unwatch(tenure);
    const held = performance.now() - tenure.since.mono;
    this.#room.events.tell("release", () => ({ ...told(tenure), held }));
    const next = this.#place.line.first;
    if (!next) return this.#release(tenure, held);
    // Of the caller that took the lock from Redis, and of the one that would be next: the smaller number counts.
    const how = handOver(hold, next.terms, Math.min(hold.mayPass, next.passes), this.#room.window);
    if (how === "yield") {
      if (this.kind.yield && this.#place.isSubscribed)
        return this.#yield(tenure, held, next, this.kind.yield);
      return this.#release(tenure, held);
    }
    hold.passes++;
    if (how === "pass") this.#give(hold, next);
    else void this.#claim(hold, next);
    return Promise.resolve();
  }

  /** `held`: for how many ms. */
  async #release(tenure: SharedLease, held: number): Promise<void> {
    const { hold } = tenure;
    const { epoch } = this.#room.commands;
    const answer = this.kind.release(hold);
    const answered = this.#room.releasing();
    this.#place.forget(hold);
    // With wake-ups, our own message wakes us together with everybody else. A queue is joined behind the release.
    if (this.#place.line.first && this.kind.pause) {
      this.#to({ at: "searching" });
      this.search.rest(performance.now() - hold.ownedAt);
    } else if (this.#place.line.first && !this.kind.queues && this.#place.isSubscribed) {
      this.#to({ at: "searching" });
      this.search.parkForWake();
    } else this.#seek();
    let loss: LockLostError | null;
    try {
      const { is } = await answer;
      loss = releaseOutcome(hold, await answer, this.#room.commands.epoch !== epoch);
      // Nothing was released, so nobody is told of it, and we were waiting for that.
      if (is !== "released") this.search.woken();
    } catch (error) {
      this.search.woken();
      this.#place.withdraw(hold);
      throw unconfirmed(hold, error);
    } finally {
      answered();
    }
    if (loss) throw this.#told(tenure, held, loss);
  }

  async #yield(
    tenure: SharedLease,
    held: number,
    next: Waiter,
    send: NonNullable<LockKind["yield"]>,
  ): Promise<void> {
    const { hold: old } = tenure;
    const { health } = this.#place;
    const { epoch } = this.#room.commands;
    const hold = this.#place.newHold();
    this.#place.forget(old);
    this.#to({ at: "yielding", hold });
    const isWaiting = (): boolean => this.#state.at === "yielding" && this.#state.hold === hold;
    health.sending();
    let answer: YieldAnswer;
    try {
      answer = await send(old, hold, this.#place.ask(hold, "queue", next));
    } catch (error) {
      health.failed(error);
      this.#place.withdraw(old);
      // Granted by message already: the old hold ended as it should.
      if (!isWaiting()) return;
      this.#place.withdraw(hold);
      this.#to({ at: "searching" });
      this.search.retry();
      throw unconfirmed(old, error);
    }
    health.answered();
    if (answer.is === "owner" || answer.is === "held") {
      if (!isWaiting()) return; // RACE 4, as in Acquisition
      hold.validity.answered(hold.sent, answer.at);
      if (answer.is === "owner") {
        hold.owned(answer);
        this.found(hold, true);
      } else {
        this.#to({ at: "searching" });
        this.search.busy(hold, answer.ttl, answer.position);
      }
      return;
    }
    if (isWaiting()) {
      this.#place.forget(hold);
      this.#seek();
    }
    const loss = releaseOutcome(old, answer, this.#room.commands.epoch !== epoch);
    if (loss) throw this.#told(tenure, held, loss);
  }

  lost(tenure: SharedLease, error: LockLostError): void {
    this.#room.watchdog.unwatch(tenure);
    this.#place.withdraw(tenure.hold);
    if (this.#state.at === "holding" && this.#state.tenure === tenure) this.#seek();
    this.#told(tenure, performance.now() - tenure.since.mono, error);
  }

  gaveUp(waiter: Waiter, error: unknown): void {
    this.#room.gaveUp(this.name, waiter, error);
  }

  #told(tenure: SharedLease, held: number, error: LockLostError): LockLostError {
    this.#room.events.tell("lost", () => ({ ...told(tenure), held, error }));
    return error;
  }

  #to(state: QueueState): void {
    assertMove(QUEUE_MOVES, this.#state.at, state.at);
    this.#state = state;
    if (this.#alarm) this.#room.timers.clear(this.#alarm);
  }

  /** Asks for whoever waits; idle when nobody does. */
  #seek(): void {
    this.#to({ at: "searching" });
    this.search.start();
  }

  /** Nobody is here any more. */
  nobodyLeft(): void {
    this.#to({ at: "idle" });
    this.#place.unlisten();
    this.#room.left(this);
  }

  /** This caller waits for a lock that this process holds. */
  #watchSelfWait(waiter: Waiter): void {
    this.#alarm ??= new CallTimer(() => this.#selfWaits());
    if (this.#alarm.index < 0 && !waiter.isWarned) this.#room.timers.set(this.#alarm, selfWaitAt(waiter));
  }

  /** The first such caller may be another one than when the alarm was set: then it is set again, for that one. */
  #selfWaits(): void {
    if (this.#state.at !== "holding") return;
    const waiter = selfWaiter(this.#place.line, this.#state.tenure);
    if (!waiter || waiter.isWarned) return;
    if (performance.now() < selfWaitAt(waiter)) this.#watchSelfWait(waiter);
    else warnSelfWait(this.#place, waiter, "this client");
  }

  /** Those that wait here, in order. */
  get callers(): Iterable<Waiter> {
    return this.#place.line;
  }
}
