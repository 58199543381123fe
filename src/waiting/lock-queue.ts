import { FIRST_REPLY, SPIN_LAST_TRY, WAKE_SPREAD } from "../defaults.ts";
import { nounOf } from "../errors.ts";
import { unavailable } from "../redis/replies.ts";
import { clocks } from "../util/clock.ts";
import { CallTimer } from "../util/timers.ts";
import { Acquisition, type AcquisitionQueue } from "./acquisition.ts";
import { LockChannel } from "./lock-channel.ts";
import { RecheckGroup } from "./recheck-group.ts";
import { selfWaitAt, selfWaiter } from "./self-wait.ts";
import { StayKeeper } from "./stay-keeper.ts";
import type { Waiter } from "./waiter.ts";
import { lastTryOf } from "./waiters.ts";

/**
 * The callers of this process at one lock. They share one acquisition, and so one entry in the queue of Redis; at a fair
 * lock each of them has an acquisition and an entry of its own. Protects their order, and each caller from an answer that
 * was true only before it came.
 */
export class LockQueue extends StayKeeper implements AcquisitionQueue {
  readonly isSolitary = this.kind.wake.by === "grant" && this.kind.wake.solitary;
  places = this.isSolitary ? new RecheckGroup() : null;
  firstTries = 0;
  subscribing = 0;
  /** At a fair lock: those of its callers. Else they share one. */
  readonly #several = this.isSolitary ? new Set<Acquisition>() : null;
  #channel: LockChannel | null = null;
  /** Rings when a caller has waited for its own client for longer than some leases. */
  #selfWaitTimer: CallTimer | null = null;

  /** `other` is the same lock by another kind of its protocol. RACE: see `RecheckGroup`. */
  shareWith(other: LockQueue): void {
    if (other.places) this.places = other.places;
    else {
      other.places = this.places;
      for (const one of other.#all) if (one.isParkedFor("grant")) this.places?.add(one);
    }
  }

  /** Made when a caller would wait. */
  get channel(): LockChannel {
    this.#channel ??= new LockChannel(this.kind, this.name, this.services.inbox, (word) => {
      for (const one of [...this.#all]) one.woken(word);
    });
    return this.#channel;
  }

  /** Is the lock held, or may Redis have something of its callers that it has not answered about? */
  get isUnderWay(): boolean {
    for (const { lease, hold } of this.#all)
      if (lease || (hold && this.services.commands.mayHaveReached(hold.sent.mono))) return true;
    return false;
  }

  get #all(): Iterable<Acquisition> {
    return this.#several ?? (this.shared ? [this.shared] : []);
  }

  /** Its callers in this process, the first one first. */
  *[Symbol.iterator](): Iterator<Waiter> {
    for (const acquisition of this.#all) yield* acquisition;
  }

  // ---- callers come and go

  join(waiter: Waiter): void {
    if (!this.shared) {
      const one = new Acquisition(this);
      if (this.#several) this.#several.add(one);
      else this.shared = one;
      one.add(waiter, true);
      one.start();
      return;
    }
    this.#share(this.shared, waiter);
  }

  /** Other callers of this process have asked for the lock, or hold it. */
  #share(one: Acquisition, waiter: Waiter): void {
    if (this.isKept) {
      one.add(waiter, true);
      if (waiter.link && one.hold) waiter.link.hold = one.hold;
      if (one.stay) this.rested(one.stay);
      return;
    }
    // RACE: our last answer was "held", but it may be old: no message tells when the lock is freed. A caller that hardly
    // waits starts a new attempt, and so does any caller while nothing is heard yet.
    const isUnplaced = one.isParkedFor("message");
    const isDoubted = isUnplaced && waiter.wait <= SPIN_LAST_TRY;
    // Another caller of this process holds it: no command is needed to know that it is not free.
    if (waiter.wait === 0 && one.lease?.held) {
      one.give(waiter);
      return;
    }
    if (waiter.wait === 0 && one.isQuestion) {
      one.joinQuestion(waiter);
      return;
    }
    // RACE: this process waits for the lock, but its holder may be gone, and Redis may hang: a caller that does not wait is told by
    // an answer of its own, and not by what was said before it came.
    const asks = one.state === "idle" || one.isAsking || waiter.wait === 0 || isDoubted;
    one.add(waiter, asks);
    if (one.state === "idle" || one.isUnsure || isDoubted) one.start();
    else if (waiter.wait === 0 && one.isParkedFor("grant")) one.answerSoon();
    else if (isUnplaced && this.kind.wake.by === "time") {
      const at = lastTryOf(waiter);
      if (at > clocks.mono.now()) one.lookBefore(at);
    }
    // RACE: a try right behind our own release would keep other processes off for as long as callers come here, so it waits
    // for the message like everybody. The message may be lost.
    else if (one.isParkedFor("release")) one.lookBefore(clocks.mono.now() + WAKE_SPREAD);
    // RACE: the holder was asked for callers that do not wait, and does not know that one waits.
    else if (one.isParkedFor("grant") && one.first?.isAsking) one.lookAgain();
    // RACE: the event loop stood still past its deadline, of which no timer has told yet.
    else if (one.lease?.expire()) {
      this.channel.listen();
      this.#awaitSelfWait(waiter);
    }
  }

  leaveAll(reason: () => unknown): void {
    for (const waiter of [...this, ...(this.claiming ?? [])]) waiter.aborted(reason());
  }

  protected refuseSince(before: number, error: () => Error): void {
    for (const waiter of [...this]) if (waiter.since < before) waiter.aborted(error());
  }

  /** A caller's time is up: of its wait, or of its first command. */
  late(one: Acquisition, waiter: Waiter): void {
    const { health, name } = this;
    const { commands } = this.services;
    const inTime = commands.heldUntil + FIRST_REPLY;
    // RACE: its command left this process late, because the event loop was blocked right behind the call.
    const isHeldBack = waiter.unanswered && commands.heldUntil >= waiter.since;
    if (isHeldBack && !waiter.isHeldBack && clocks.mono.now() < inTime) {
      // Once: other commands of this process may be late again and again.
      waiter.isHeldBack = true;
      waiter.at = inTime;
      return;
    }
    if (one.outrun?.waiter === waiter) one.refuse(waiter, one.outrun.refusal(name));
    else if (waiter.unanswered || health.isDoubtful) {
      const cause = health.failure ?? commands.trouble();
      one.refuse(waiter, unavailable(name, "", cause, nounOf(this.kind)));
    }
    // RACE: it came while others waited here, and Redis has said nothing since, perhaps because it hangs. "Busy" is not for us to say.
    else if (health.saidAt < waiter.since && !one.lease?.held) {
      one.asksLast(waiter);
      one.answerSoon();
    } else one.give(waiter);
    one.deserted();
  }

  /** No caller is left there. */
  left(one: Acquisition): void {
    if (this.#several ? !this.#several.delete(one) || this.#several.size > 0 : this.shared !== one) return;
    this.shared = null;
    this.#channel?.unlisten();
    if (this.#selfWaitTimer) this.services.timers.clear(this.#selfWaitTimer);
    this.services.left(this);
  }

  // ---- callers with entries of their own

  get isCrowded(): boolean {
    // After a failure nothing is taken for granted.
    if (!this.#several || this.#several.size < 2 || this.health.failures > 0) return false;
    // Where several may hold at once, the others may all have theirs.
    return !this.kind.besides || !this.places?.isEmpty || this.subscribing > 0 || this.firstTries >= MANY;
  }

  firstTried(): void {
    this.firstTries--;
    if (this.isSolitary) this.subscribed();
  }

  /** Messages may have been missed that say that somebody else wants the lock. */
  mayBeWanted(): void {
    const at = clocks.mono.now();
    if (this.kind.hasStays) for (const { hold } of this.#all) hold?.want(at);
  }

  /** Something is heard from now on. The callers begin in the order in which they came. */
  subscribed(): void {
    if (!this.channel.isHeard && !this.channel.mayQueue) return;
    // RACE: a caller that came earlier and whose try is under way queues first.
    if (this.isSolitary && this.firstTries > 0) return;
    for (const one of [...this.#all]) if (one.isParkedFor("subscription")) one.start();
  }

  /** A message may have been missed, or the connection is back. */
  lookAgain(): void {
    for (const one of [...this.#all]) one.lookAgain();
  }

  // ---- callers that wait for their own process

  /** A caller waits in Redis: perhaps for another client of this process. */
  waits(head: Waiter): void {
    this.services.selfWait.look(this, head);
  }

  /** This caller waits for a lock that this client holds. */
  #awaitSelfWait(waiter: Waiter): void {
    this.#selfWaitTimer ??= new CallTimer(() => this.#selfWaits());
    if (this.#selfWaitTimer.index < 0 && !waiter.isWarned)
      this.services.timers.set(this.#selfWaitTimer, selfWaitAt(waiter));
  }

  /** The first such caller may be another one than when the timer was set: then it is set again, for that one. */
  #selfWaits(): void {
    for (const { lease } of this.#all) {
      const waiter = lease && selfWaiter(this, lease);
      if (!waiter || waiter.isWarned) continue;
      if (clocks.mono.now() < selfWaitAt(waiter)) this.#awaitSelfWait(waiter);
      else this.services.selfWait.warn(this.name, waiter, "this client");
    }
  }
}

/** So many first tries at once of callers that would queue, where several may hold: more of them wait for the subscription. */
const MANY = 8;
