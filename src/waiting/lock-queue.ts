import { FIRST_REPLY, SPIN_LAST_TRY, WAKE_SPREAD } from "../defaults.ts";
import { unavailable } from "../redis/replies.ts";
import { CallTimer } from "../util/timers.ts";
import { Acquisition, type AcquisitionQueue } from "./acquisition.ts";
import { LockChannel } from "./lock-channel.ts";
import type { LockKind } from "./lock-kind.ts";
import { LockOwner } from "./lock-owner.ts";
import { RecheckGroup } from "./recheck-group.ts";
import { type SelfWait, selfWaitAt, selfWaiter } from "./self-wait.ts";
import type { Services } from "./services.ts";
import type { Waiter } from "./waiters.ts";
import { lastTryOf } from "./waiters.ts";

/** The client of a lock queue. */
interface QueueOwner extends Services {
  readonly selfWait: SelfWait;
  /** No caller is left in it. */
  left(queue: LockQueue): void;
}

/**
 * The callers of this process at one lock. They share one acquisition, and so one entry in the queue of Redis; at a fair
 * lock each of them has an acquisition and an entry of its own. Protects their order, and each caller from an answer that
 * was true only before it came.
 */
export class LockQueue extends LockOwner implements AcquisitionQueue {
  readonly isSolitary: boolean;
  places: RecheckGroup | null;
  firstTries = 0;
  subscribing = 0;
  readonly #owner: QueueOwner;
  readonly #acquisitions = new Set<Acquisition>();
  #channel: LockChannel | null = null;
  /** Rings when a caller has waited for its own client for longer than some leases. */
  #selfWaitTimer: CallTimer | null = null;

  constructor(kind: LockKind, name: string, owner: QueueOwner) {
    super(kind, name, owner);
    this.#owner = owner;
    this.isSolitary = kind.wake.by === "grant" && kind.wake.solitary;
    this.places = this.isSolitary ? new RecheckGroup() : null;
  }

  /** `other` is the same lock by another kind of its protocol. RACE: see `RecheckGroup`. */
  shareWith(other: LockQueue): void {
    if (other.places) this.places = other.places;
    else {
      other.places = this.places;
      for (const one of other.#acquisitions) if (one.isParkedFor("grant")) this.places?.add(one);
    }
  }

  /** Made when a caller would wait. */
  get channel(): LockChannel {
    this.#channel ??= new LockChannel(this.kind, this.name, this.#owner.inbox, (word) => {
      for (const one of [...this.#acquisitions]) one.woken(word);
    });
    return this.#channel;
  }

  /** Is the lock held, or may Redis have something of its callers that it has not answered about? */
  get isUnderWay(): boolean {
    for (const { lease, hold } of this.#acquisitions)
      if (lease || (hold && this.services.commands.mayHaveReached(hold.sent.mono))) return true;
    return false;
  }

  /** Its callers in this process, the first one first. */
  *[Symbol.iterator](): Iterator<Waiter> {
    for (const acquisition of this.#acquisitions) yield* acquisition;
  }

  // ---- callers come and go

  join(waiter: Waiter): void {
    const [shared] = this.isSolitary ? [] : this.#acquisitions;
    const one = shared ?? new Acquisition(this);
    if (!shared) this.#acquisitions.add(one);
    // RACE: our last answer was "held", but it may be old: no message tells when the lock is freed. A caller that hardly
    // waits starts a new attempt, and so does any caller while nothing is heard yet.
    const isUnplaced = one.isParkedFor("message");
    const isDoubted = isUnplaced && waiter.wait <= SPIN_LAST_TRY;
    const asks = one.state === "idle" || one.isAsking || isDoubted;
    // Another caller of this process waits or holds: no command is needed to know that the lock is not free.
    if (!asks && waiter.wait === 0) {
      one.give(waiter, null);
      return;
    }
    one.add(waiter, asks);
    if (one.state === "idle" || one.isUnsure || isDoubted) one.start();
    else if (isUnplaced && this.kind.wake.by === "time") {
      const at = lastTryOf(waiter);
      if (at > performance.now()) one.lookBefore(at);
    }
    // RACE: a try right behind our own release would keep other processes off for as long as callers come here, so it waits
    // for the message like everybody. The message may be lost.
    else if (one.isParkedFor("release")) one.lookBefore(performance.now() + WAKE_SPREAD);
    else if (one.lease) {
      this.channel.listen();
      this.#awaitSelfWait(waiter);
    }
  }

  /** Its signal aborted, or its client closes: it gets its answer at once. */
  leave(waiter: Waiter, reason: unknown): void {
    const one = waiter.group;
    if (!(one instanceof Acquisition)) return;
    one.refuse(waiter, reason);
    one.deserted();
  }

  leaveAll(reason: () => unknown): void {
    for (const waiter of [...this, ...this.claiming]) this.leave(waiter, reason());
  }

  protected refuseSince(before: number, error: () => Error): void {
    for (const waiter of [...this]) if (waiter.since < before) this.leave(waiter, error());
  }

  /** A caller's time is up: of its wait, or of its first command. */
  late(one: Acquisition, waiter: Waiter): void {
    const { health, name } = this;
    const { commands, timers } = this.services;
    const inTime = commands.heldUntil + FIRST_REPLY;
    // RACE: its command left this process late, because the event loop was blocked right behind the call.
    const isHeldBack = waiter.answerBy !== Number.POSITIVE_INFINITY && commands.heldUntil >= waiter.since;
    if (isHeldBack && !waiter.isHeldBack && performance.now() < inTime) {
      // Once: other commands of this process may be late again and again.
      waiter.isHeldBack = true;
      timers.set(waiter, inTime);
      return;
    }
    if (one.outrun?.waiter === waiter) one.refuse(waiter, one.outrun.refusal(name));
    else if (waiter.answerBy !== Number.POSITIVE_INFINITY || health.isDoubtful) {
      const cause = health.failure ?? this.services.commands.trouble();
      one.refuse(waiter, unavailable(name, "Redis did not answer while this call waited", cause));
    } else one.give(waiter, null);
    one.deserted();
  }

  /** No caller is left there. */
  left(one: Acquisition): void {
    if (!this.#acquisitions.delete(one) || this.#acquisitions.size > 0) return;
    this.#channel?.unlisten();
    if (this.#selfWaitTimer) this.services.timers.clear(this.#selfWaitTimer);
    this.#owner.left(this);
  }

  // ---- callers with entries of their own

  get isCrowded(): boolean {
    // After a failure nothing is taken for granted.
    return this.isSolitary && this.#acquisitions.size > 1 && this.health.failures === 0;
  }

  firstTry(): void {
    this.firstTries++;
  }

  firstTried(): void {
    this.firstTries--;
    if (this.isSolitary) this.subscribed();
  }

  /** Something is heard from now on. The callers begin in the order in which they came. */
  subscribed(): void {
    if (!this.channel.isHeard && !this.channel.mayQueue) return;
    // RACE: a caller that came earlier and whose try is under way queues first.
    if (this.isSolitary && this.firstTries > 0) return;
    for (const one of [...this.#acquisitions]) if (one.isParkedFor("subscription")) one.start();
  }

  /** A message may have been missed, or the connection is back. */
  lookAgain(): void {
    for (const one of [...this.#acquisitions]) one.lookAgain();
  }

  // ---- callers that wait for their own process

  /** A caller waits in Redis: perhaps for another client of this process. */
  waits(head: Waiter): void {
    this.#owner.selfWait.look(this, head);
  }

  /** This caller waits for a lock that this client holds. */
  #awaitSelfWait(waiter: Waiter): void {
    this.#selfWaitTimer ??= new CallTimer(() => this.#selfWaits());
    if (this.#selfWaitTimer.index < 0 && !waiter.isWarned)
      this.services.timers.set(this.#selfWaitTimer, selfWaitAt(waiter));
  }

  /** The first such caller may be another one than when the timer was set: then it is set again, for that one. */
  #selfWaits(): void {
    for (const { lease } of this.#acquisitions) {
      const waiter = lease && selfWaiter(this, lease);
      if (!waiter || waiter.isWarned) continue;
      if (performance.now() < selfWaitAt(waiter)) this.#awaitSelfWait(waiter);
      else this.#owner.selfWait.warn(this.name, waiter, "this client");
    }
  }
}
