import { nounOf } from "../api/wording.ts";
import type { LockKind } from "../core/lock-kind.ts";
import { RecheckGroup } from "../core/recheck-group.ts";
import { RedisHealth } from "../core/redis-health.ts";
import { selfWaitAt, selfWaiter, type Waiting } from "../core/waiting.ts";
import { FIRST_REPLY, SPIN_LAST_TRY, WAKE_SPREAD } from "../defaults.ts";
import { unavailable } from "../redis/replies.ts";
import { clocks } from "../util/clock.ts";
import { CallTimer, isSet } from "../util/timers.ts";
import { Acquisition, type AcquisitionHome } from "./acquisition.ts";
import type { Context } from "./context.ts";
import { ExclusiveTenure } from "./exclusive-tenure.ts";
import type { Hold } from "./lease/hold.ts";
import type { SharedLease } from "./lease/shared-lease.ts";
import { lastTryOf } from "./line.ts";
import { LockChannel } from "./lock-channel.ts";
import type { Tenure, TenureHome } from "./tenure.ts";
import type { Waiter } from "./waiter.ts";

/**
 * One lock in this process: its waiting callers, in acquisitions, and their holds, in tenures. The
 * callers share one acquisition, and so one place in Redis's queue; at a fair lock each has its
 * own. Protects their order, and each caller from an answer that was true only before it came.
 */
export class LocalLock implements AcquisitionHome, TenureHome {
  readonly kind: LockKind;
  readonly name: string;
  readonly context: Context;
  /** What is known of Redis counts for all callers here. */
  readonly health = new RedisHealth();
  readonly isSolitary: boolean;
  places: RecheckGroup | null;
  firstTries = 0;
  subscribing = 0;
  shared: Acquisition | null = null;
  readonly #tenures = new Set<Tenure>();
  /** At a fair lock: the acquisitions of its callers. Otherwise they share one. */
  readonly #several: Set<Acquisition> | null;
  #channel: LockChannel | null = null;
  /** Rings when a caller has waited for its own client for several leases. */
  #selfWaitTimer: CallTimer | null = null;

  constructor(kind: LockKind, name: string, context: Context) {
    this.kind = kind;
    this.name = name;
    this.context = context;
    this.isSolitary = kind.wake.by === "grant" && kind.wake.solitary;
    this.#several = this.isSolitary ? new Set() : null;
    // Readers and writers of one client have places in the same queue of Redis.
    this.places = this.isSolitary || kind.sharing ? new RecheckGroup() : null;
  }

  /** The same lock by another kind has places in the same queue. RACE: see `RecheckGroup`. */
  useGroup(places: RecheckGroup): void {
    this.places = places;
    for (const one of this.#acquisitions) if (one.isParkedFor("grant")) places.add(one);
  }

  get #acquisitions(): Iterable<Acquisition> {
    return this.#several ?? (this.shared ? [this.shared] : []);
  }

  /** Its callers in this process, the first one first. */
  *[Symbol.iterator](): Iterator<Waiter> {
    for (const one of this.#acquisitions) yield* one.line;
  }

  /** Made when a caller would wait. */
  get channel(): LockChannel {
    this.#channel ??= new LockChannel(this.kind, this.name, this.context.inbox, (word) => {
      for (const one of [...this.#acquisitions]) one.woken(word);
    });
    return this.#channel;
  }

  /** Is the lock held, or may Redis have an unanswered hold of its callers? */
  get isUnderWay(): boolean {
    if (this.#tenures.size > 0) return true;
    for (const { hold } of this.#acquisitions)
      if (hold && this.context.commands.mayHaveReached(hold.sent.mono)) return true;
    return false;
  }

  // ---- callers come

  join(waiter: Waiter): void {
    if (this.shared) {
      this.#share(this.shared, waiter);
      return;
    }
    const one = new Acquisition(this);
    if (this.#several) this.#several.add(one);
    else this.shared = one;
    one.line.add(waiter, true);
    one.start();
  }

  /** Other callers of this process are asking for the lock, or have it. */
  #share(one: Acquisition, waiter: Waiter): void {
    const { line } = one;
    // RACE: our last answer was "held", but it may be old, because no message says when the lock is
    // freed. So a caller that barely waits starts a new attempt; any caller does while no messages
    // are received yet.
    const isUnplaced = one.isParkedFor("message");
    const isDoubted = isUnplaced && waiter.wait <= SPIN_LAST_TRY;
    const holder = this.#holder;
    // Another caller of this process holds it: no command is needed to know that it is not free.
    if (waiter.wait === 0 && holder?.held) {
      line.give(waiter);
      return;
    }
    if (waiter.wait === 0 && one.isQuestion) {
      line.joinQuestion(waiter);
      return;
    }
    // RACE: this process waits for the lock, but its holder may be gone, and Redis may hang. So a
    // caller that does not wait gets an answer of its own, not one from before it came.
    line.add(waiter, this.#isAsking(one) || waiter.wait === 0 || isDoubted);
    if (one.state === "idle" || one.isUnsure || isDoubted) one.start();
    else if (waiter.wait === 0 && one.isParkedFor("grant")) one.answerSoon();
    else if (isUnplaced && this.kind.wake.by === "time") {
      const at = lastTryOf(waiter);
      if (at > clocks.mono.now()) one.lookBefore(at);
    }
    // RACE: a try right after our own release would keep other processes out while callers keep
    // coming here. So it waits for the message like all others; the message may be lost.
    else if (one.isParkedFor("release")) one.lookBefore(clocks.mono.now() + WAKE_SPREAD);
    // RACE: the holder was only asked whether it is idle, and does not know yet that a caller waits.
    else if (one.isParkedFor("grant") && line.first?.isAsking) one.lookAgain();
    // RACE: the event loop was blocked past its deadline, and no timer has run yet.
    else if (holder?.expire()) {
      this.channel.listen();
      this.#awaitSelfWait(waiter);
    }
  }

  /**
   * Is the lock being requested, or will it be when a caller comes, so that new callers share a
   * first command? RACE: also while it is ours and no caller here has it: until Redis answers, no
   * process is known to hold it, and a new caller may be the one that gets it.
   */
  #isAsking(one: Acquisition): boolean {
    const { state } = one;
    if (state === "owned") return !this.#holder?.held;
    return state === "idle" || state === "asking" || one.isUnsure || one.isParkedFor("release");
  }

  /**
   * The lease of the caller that has the lock in this process, if only one at a time can have it
   * and all others wait for that.
   */
  get #holder(): SharedLease | null {
    if (this.isSolitary) return null;
    for (const { holder } of this.#tenures) return holder;
    return null;
  }

  // ---- callers go

  leaveAll(reason: () => unknown): void {
    const claiming = [...this.#tenures].flatMap((tenure) => tenure.claiming ?? []);
    for (const waiter of [...this, ...claiming]) waiter.aborted(reason());
  }

  refuseSince(before: number, error: () => Error): void {
    for (const waiter of [...this]) if (waiter.since < before) waiter.aborted(error());
  }

  late(one: Acquisition, waiter: Waiter): void {
    this.context.events.step(() => this.#late(one, waiter));
  }

  #late(one: Acquisition, waiter: Waiter): void {
    const { health, name } = this;
    const { commands } = this.context;
    const { line } = one;
    const inTime = commands.heldUntil + FIRST_REPLY;
    // RACE: its command left this process late, because the event loop was blocked right after the
    // call.
    const isSentLate = waiter.unanswered && commands.heldUntil >= waiter.since;
    if (isSentLate && !waiter.isSentLate && clocks.mono.now() < inTime) {
      // Only once: other commands of this process may be late repeatedly.
      waiter.isSentLate = true;
      waiter.until = inTime;
      return;
    }
    if (one.leaseTooShort?.waiter === waiter) line.refuse(waiter, one.leaseTooShort.refusal(name));
    // RACE: it is the first place that re-checks for this one, perhaps a place of the lock's other kind.
    else if (waiter.unanswered || health.isDoubtful || this.places?.health?.isDoubtful) {
      const cause = health.failure ?? this.places?.health?.failure ?? commands.trouble();
      line.refuse(waiter, unavailable(name, "", cause, nounOf(this.kind)));
    }
    // RACE: it came while others waited here, and Redis has not answered since, perhaps because it
    // hangs. Then this process cannot know that the lock is busy.
    else if (health.saidAt < waiter.since && !this.#holder?.held) {
      line.asksLast(waiter);
      one.answerSoon();
    } else line.give(waiter);
    one.deserted();
  }

  left(one: Acquisition): void {
    if (this.#several ? !this.#several.delete(one) || this.#several.size > 0 : this.shared !== one) return;
    this.shared = null;
    if (this.#tenures.size === 0) this.#end();
  }

  #end(): void {
    this.#channel?.unlisten?.();
    if (this.#selfWaitTimer) this.context.timers.clear(this.#selfWaitTimer);
    this.context.left(this);
  }

  // ---- tenures

  /** A hold becomes ours: hand it to the first in line. */
  won(one: Acquisition, hold: Hold, isDirect: boolean): void {
    const tenure = new ExclusiveTenure(this, one, hold);
    this.#tenures.add(tenure);
    this.context.inbox.expect(hold, tenure);
    tenure.found(one, isDirect);
  }

  ended(tenure: Tenure): void {
    this.#tenures.delete(tenure);
    if (this.#tenures.size === 0 && !this.shared && !this.#several?.size) this.#end();
  }

  /** Messages that say that another process wants the lock may have been missed. */
  mayBeWanted(): void {}

  // ---- callers with their own places

  get isCrowded(): boolean {
    // After a failure, assume nothing.
    if (!this.#several || this.#several.size < 2 || this.health.failures > 0) return false;
    // If several may hold at once, all others may already hold.
    if (!this.kind.unitsFreeWithout) return true;
    return !this.places?.isEmpty || this.subscribing > 0 || this.firstTries >= MAX_FIRST_TRIES;
  }

  firstTried(): void {
    this.firstTries--;
    if (this.isSolitary) this.subscribed();
  }

  /** A subscription is acknowledged. The callers start in the order in which they came. */
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

  waits(head: Waiter): void {
    this.context.selfWait.look(this, head);
  }

  /** This caller waits for a lock that this client holds. */
  #awaitSelfWait(waiter: Waiting): void {
    this.#selfWaitTimer ??= new CallTimer(() => this.#selfWaits());
    if (!isSet(this.#selfWaitTimer) && !waiter.isWarned)
      this.context.timers.set(this.#selfWaitTimer, selfWaitAt(waiter));
  }

  /**
   * The first such caller may differ from the one for which the timer was set: then set it again.
   */
  #selfWaits(): void {
    const lease = this.#holder;
    const waiter = lease && selfWaiter(this, lease);
    if (!waiter || waiter.isWarned) return;
    if (clocks.mono.now() < selfWaitAt(waiter)) this.#awaitSelfWait(waiter);
    else this.context.selfWait.warn(this.name, waiter, "this client");
  }
}

/**
 * How many first tries of queueing callers may be under way, if several may hold: more callers wait
 * for the subscription.
 */
const MAX_FIRST_TRIES = 8;
