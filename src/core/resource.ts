import { LockUnavailableError } from "../api/errors.ts";
import type { Caller } from "../api/events.ts";
import { nounOf } from "../api/wording.ts";
import type { Hold } from "../engine/lease/hold.ts";
import type { SharedLease } from "../engine/lease/shared-lease.ts";
import { isRefusal } from "../redis/replies.ts";
import { clocks } from "../util/clock.ts";
import { LinkedList } from "../util/linked-list.ts";
import { nextTick } from "../util/real-timers.ts";
import { CallTimer, isSet } from "../util/timers.ts";
import type { Applicant } from "./fits.ts";
import type { AttemptOptions, LockKind, Run } from "./lock-kind.ts";
import { Place } from "./place.ts";
import { Pool } from "./pool.ts";
import type { Port } from "./port.ts";
import { RecheckGroup } from "./recheck-group.ts";
import { RedisHealth } from "./redis-health.ts";
import { nextTry } from "./schedule.ts";
import type { SharedHold } from "./shared-hold.ts";
import type { Waiter } from "./waiter.ts";
import { selfWaitAt, selfWaiter, type Waiting } from "./waiting.ts";

/**
 * One lock in use in this process: its places, in the order in which their callers came, and what is
 * known of its Redis. Protects their order until Redis's queue has it.
 */
export class Resource {
  readonly kind: LockKind;
  readonly name: string;
  readonly port: Port;
  readonly channel: string;
  readonly health = new RedisHealth();
  #places: RecheckGroup | null = null;
  /** How many tries of callers that will queue are under way. */
  firstTries = 0;
  /** How many callers will queue as soon as the subscription is acknowledged. */
  subscribing = 0;
  /** The place of all callers here; null: there is none, or each caller has its own. */
  shared: Place | null = null;
  readonly #all = new LinkedList<Place>();
  /** Rings when a caller has waited for its own client for several leases. */
  #selfWait: CallTimer | null = null;
  #isListening = false;
  /** Its holds that serve several callers of this process. Made for the first one. */
  #holds: Set<SharedHold> | null = null;
  isGathering = false;

  constructor(kind: LockKind, name: string, port: Port) {
    this.kind = kind;
    this.name = name;
    this.port = port;
    this.channel = port.inbox.channelOf(name);
  }

  /** Its callers, the first one first. */
  *[Symbol.iterator](): Iterator<Waiter> {
    for (const { line } of this.#all) yield* line;
  }

  /** The place for one more caller. */
  place(): Place {
    if (this.shared) return this.shared;
    return new Place(this);
  }

  /** This place has its first caller. */
  came(place: Place): void {
    const { wake } = this.kind;
    this.#all.add(place);
    if (wake.by === "grant" && !wake.solitary) this.shared = place;
    if (this.#holds) for (const hold of [...this.#holds]) hold.lineFormed();
  }

  /** No caller and no hold is left in this place. */
  gone(place: Place): void {
    if (!this.#all.delete(place)) return;
    this.shared = null;
    this.#endUnused();
  }

  #endUnused(): void {
    if (this.#all.size > 0 || this.#holds?.size) return;
    if (this.#selfWait) this.port.timers.clear(this.#selfWait);
    this.port.left(this);
  }

  /** Is the lock held, or may Redis have an unanswered hold of its callers? */
  get isUnderWay(): boolean {
    if (this.#holds?.size) return true;
    for (const { isOurs, hold } of this.#all)
      if (isOurs || (hold && this.port.commands.mayHaveReached(hold.sent.mono))) return true;
    return false;
  }

  /** This client's places in the lock's queue, by any kind. Made for the first one. */
  get places(): RecheckGroup {
    this.#places ??= new RecheckGroup();
    return this.#places;
  }

  /** The places of the same lock by another kind are in the same queue. RACE: see `RecheckGroup`. */
  useGroup(places: RecheckGroup): void {
    this.#places = places;
  }

  // ---- holds with several users

  pool(hold: Hold, run: Run, units: number): Pool {
    const pool = new Pool(this, hold, run, units);
    this.#holds ??= new Set();
    this.#holds.add(pool);
    this.port.inbox.expect(hold, pool);
    return pool;
  }

  ended(hold: SharedHold): void {
    this.#holds?.delete(hold);
    this.#endUnused();
  }

  /** A caller enters without a command and without joining the line. Null: it has to wait. */
  takeIn(comer: Applicant, caller: Caller): SharedLease | null {
    // No caller does while others are in the line.
    if (this.shared) return this.shared.takeIn(comer, caller);
    for (const hold of this.#holds ?? []) {
      const lease = hold.takeIn(comer, caller);
      if (lease) return lease;
    }
    return null;
  }

  /** Several callers that have left get their answers together, and may come back together. */
  gather(): void {
    this.isGathering = true;
    nextTick(() => {
      this.isGathering = false;
      if (this.shared?.state.word === "idle") this.shared.ask();
    });
  }

  // ---- messages

  /** Is every message for its holds received from now on? */
  get isHeard(): boolean {
    return this.port.inbox.subscriptions.isReady(this.channel);
  }

  /**
   * May its callers queue? Only while grants can be received. If subscribing keeps failing, they
   * queue anyway and find the grant by a re-check: otherwise this client would never get the lock.
   */
  get mayQueue(): boolean {
    return this.isHeard || this.isUnheard;
  }

  /** Has subscribing failed, for now? */
  get isUnheard(): boolean {
    return this.port.inbox.isUnheard(this.channel);
  }

  /** The channel's present state, for one command. */
  look(): NonNullable<AttemptOptions["channel"]> {
    return this.port.inbox.look(this.channel);
  }

  /** A message was missed: does this client receive any? */
  selfTest(): void {
    void this.port.inbox.subscriptions.selfTest(this.channel);
  }

  /** Subscribes, if that is not under way. */
  listen(): void {
    if (this.#isListening || this.isHeard) return;
    this.#isListening = true;
    this.port.inbox.ready(this.channel).then(
      () => {
        this.#isListening = false;
        // The first of a client's locks starts the callers of all.
        if (this.subscribing > 0) this.port.subscribed();
      },
      (error: unknown) => {
        this.#isListening = false;
        this.port.events.step(() => this.#unheard(error));
      },
    );
  }

  /** A refusal is final. A lost connection is not: until it is back, callers wait without messages. */
  #unheard(error: unknown): void {
    const { health, name, kind } = this;
    const what = "its channel cannot be subscribed to";
    for (const place of [...this.#all]) {
      if (!place.isSubscribing) continue;
      // No answer of a holder would be received.
      place.line.refuseAsking();
      health.failed(error);
      if (isRefusal(error))
        place.line.refuseAll(() => new LockUnavailableError(name, what, error, nounOf(kind)));
      // The pause does not depend on the number of failures: tries in between are answered, and
      // would become storms.
      const { first } = place.line;
      if (first) place.rest(nextTry(first.since));
      else place.stop();
    }
  }

  // ---- the order of callers that have not queued yet

  /**
   * RACE: a caller must not queue before an earlier one whose try is still unanswered, or which is
   * about to be notified of the subscription. And when a thousand callers come at once, they need
   * not all try before they queue.
   */
  mayAsk(place: Place, mode: "try" | "queue"): boolean {
    const isNew = place.state.word === "idle";
    if (mode === "queue") return this.firstTries === 0 && !(isNew && this.subscribing > 0);
    // After a failure, assume nothing.
    return !isNew || this.#all.size < 2 || this.health.failures > 0;
  }

  firstTried(): void {
    this.firstTries--;
    this.subscribed();
  }

  /** The subscription is acknowledged, or not to be had. Callers start in the order in which they came. */
  subscribed(): void {
    // Before the last first try is answered, `mayAsk` would send all of them back.
    if (!this.mayQueue || this.firstTries > 0) return;
    for (const place of [...this.#all]) if (place.isSubscribing) place.ask();
  }

  /** A message may have been missed, or the connection is back. */
  lookAgain(): void {
    for (const place of [...this.#all]) place.lookAgain();
  }

  // ---- callers that wait for their own process

  /** This caller waits for one of its own client. */
  awaitSelfWait(caller: Waiting): void {
    this.#selfWait ??= new CallTimer(() => this.#selfWaits());
    if (!isSet(this.#selfWait) && !caller.isWarned) this.port.timers.set(this.#selfWait, selfWaitAt(caller));
  }

  /** The first such caller may not be the one for which the timer was set. */
  #selfWaits(): void {
    const { holder } = this.shared ?? {};
    const caller = holder && selfWaiter(this, holder);
    if (!caller || caller.isWarned) return;
    if (clocks.mono.now() < selfWaitAt(caller)) this.awaitSelfWait(caller);
    else this.port.selfWait.warn(this.name, caller, "this client");
  }

  // ---- its end

  leaveAll(reason: () => unknown): void {
    for (const place of [...this.#all]) place.leaveAll(reason);
  }

  /** Refuses callers that have waited since before then: more tries would end the same way. */
  refuseSince(before: number, error: () => Error): void {
    for (const caller of [...this]) if (caller.since < before) caller.aborted(error());
  }

  /** Messages that say that another process wants the lock may have been missed. */
  mayBeWanted(): void {
    const at = clocks.mono.now();
    if (this.kind.hasStays) for (const { hold } of this.#all) hold?.want(at);
  }
}
