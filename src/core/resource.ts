import { LockUnavailableError } from "../api/errors.ts";
import type { Caller } from "../api/events.ts";
import { nounOf } from "../api/wording.ts";
import { isRefusal } from "../redis/replies.ts";
import { clocks } from "../util/clock.ts";
import { LinkedList } from "../util/linked-list.ts";
import { nextTick } from "../util/real-timers.ts";
import { CallTimer, isSet } from "../util/timers.ts";
import type { Applicant } from "./fits.ts";
import type { Hold } from "./lease/hold.ts";
import type { SharedLease } from "./lease/shared-lease.ts";
import type { AttemptOptions, LockKind, Run } from "./lock-kind.ts";
import { Place } from "./place.ts";
import { Pool } from "./pool.ts";
import type { Port } from "./port.ts";
import { Readers } from "./readers.ts";
import { RecheckGroup } from "./recheck-group.ts";
import { RedisHealth } from "./redis-health.ts";
import { nextTry } from "./schedule.ts";
import type { SharedHold } from "./shared-hold.ts";
import { selfWaitAt, selfWaiter, type Waiter } from "./waiter.ts";
import { WritePlace } from "./write-place.ts";

/**
 * One lock in use in this process, by all kinds of its protocol: its places, in the order in which
 * their callers came, its holds with several users, and what is known of its Redis. Protects the order
 * of its callers until Redis's queue has it.
 */
export class Resource {
  /** That of its first caller. All of them have one protocol. */
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
  /** The places whose callers share them, one for each kind. Null: there is none. */
  #shared: Place | null = null;
  #otherShared: Place | null = null;
  /** How many of its places are of writers. */
  #writers = 0;
  protected readonly all = new LinkedList<Place>();
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
    for (const { line } of this.all) yield* line;
  }

  /** The place for one more caller of this kind. */
  place(kind: LockKind): Place {
    return this.shared(kind) ?? (kind.mode === "write" ? new WritePlace(this, kind) : new Place(this, kind));
  }

  /** The place of all callers of a kind; null: there is none, or each caller has its own. */
  shared(kind: LockKind): Place | null {
    if (this.#shared?.kind === kind) return this.#shared;
    return this.#otherShared?.kind === kind ? this.#otherShared : null;
  }

  /** This place has its first caller. */
  came(place: Place): void {
    if (this.all.has(place)) return;
    const { wake, mode } = place.kind;
    this.all.add(place);
    if (mode === "write") this.#writers++;
    if (wake.by !== "grant" || !wake.solitary) {
      if (this.#shared) this.#otherShared = place;
      else this.#shared = place;
    }
    for (const hold of this.#holdsOf(place.kind)) hold.lineFormed();
  }

  /** No caller and no hold is left in this place. */
  gone(place: Place): void {
    if (!this.all.delete(place)) return;
    if (place.kind.mode === "write") this.#writers--;
    if (this.#shared === place) this.#shared = null;
    else if (this.#otherShared === place) this.#otherShared = null;
    this.endUnused();
  }

  /** Without a place and a hold it is forgotten. */
  endUnused(): void {
    if (this.all.size > 0 || this.#holds?.size) return;
    this.end();
  }

  protected end(): void {
    if (this.#selfWait) this.port.timers.clear(this.#selfWait);
    this.port.left(this);
  }

  /** Is the lock held, or may Redis have an unanswered hold of its callers? */
  get isUnderWay(): boolean {
    if (this.#holds?.size) return true;
    for (const { isOurs, hold } of this.all)
      if (isOurs || (hold && this.port.commands.mayHaveReached(hold.sent.mono))) return true;
    return false;
  }

  /** This client's places in the lock's queue, by any kind. Made for the first one. */
  get places(): RecheckGroup {
    this.#places ??= new RecheckGroup();
    return this.#places;
  }

  // ---- holds with several users

  /** A hold came that serves several callers. `run`: for permits. */
  share(kind: LockKind, hold: Hold, run: Run | null, units: number): Pool | Readers {
    const shared = run ? new Pool(this, kind, hold, run, units) : new Readers(this, kind, hold, null);
    this.began(shared);
    return shared;
  }

  /** It has its own hold from now on. */
  began(shared: SharedHold): void {
    this.#holds ??= new Set();
    this.#holds.add(shared);
    this.port.inbox.expect(shared.hold, shared);
  }

  #holdsOf(kind: LockKind): SharedHold[] {
    return this.#holds ? [...this.#holds].filter((hold) => hold.kind === kind) : [];
  }

  ended(hold: SharedHold): void {
    this.#holds?.delete(hold);
    this.endUnused();
  }

  /** A caller enters without a command and without joining the line. Null: it has to wait. */
  takeIn(kind: LockKind, comer: Applicant, caller: Caller): SharedLease | null {
    // No caller does while others are in the line.
    const place = this.shared(kind);
    if (place) return place.takeIn(comer, caller);
    if (this.#holds)
      for (const hold of this.#holds) {
        const lease = hold.kind === kind ? hold.takeIn(comer, caller) : null;
        if (lease) return lease;
      }
    return null;
  }

  /** Several callers that have left get their answers together, and may come back together. */
  gather(): void {
    this.isGathering = true;
    nextTick(() => {
      this.isGathering = false;
      for (const place of [...this.all]) if (place.state.word === "idle") place.ask();
    });
  }

  // ---- readers and writers

  /** When the first writer here that waits has come; Infinity: none waits. */
  get writerSince(): number {
    let first = Number.POSITIVE_INFINITY;
    if (this.#writers === 0) return first;
    for (const { kind, line } of this.all)
      if (kind.mode === "write")
        for (const { wait, since } of line) if (wait > 0 && since < first) first = since;
    return first;
  }

  /** Does a caller here want to write, whether it waits or not? */
  get hasWriter(): boolean {
    if (this.#writers === 0) return false;
    for (const { kind, line } of this.all) if (kind.mode === "write" && line.first) return true;
    return false;
  }

  /** This reader enters a hold of other readers here after a command. False: none may serve it. */
  joins(place: Place, first: Waiter): boolean {
    // The answer would be useless to a reader that comes after a writer of this process.
    if (!this.#holds || this.writerSince < Number.POSITIVE_INFINITY) return false;
    for (const hold of this.#holds) if (hold instanceof Readers && hold.joinedBy(place, first)) return true;
    return false;
  }

  /** A writer asks: readers' holds that are kept with no reader inside end at once. */
  giveWay(): void {
    if (this.#holds) for (const hold of [...this.#holds]) if (hold instanceof Readers) hold.giveWay();
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
    this.ready().then(
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

  /** Resolves when every message is received. */
  protected ready(): Promise<void> {
    return this.port.inbox.ready(this.channel);
  }

  /** A refusal is final. A lost connection is not: until it is back, callers wait without messages. */
  #unheard(error: unknown): void {
    const { health, name } = this;
    const what = "its channel cannot be subscribed to";
    for (const place of [...this.all]) {
      if (!place.isSubscribing) continue;
      // No answer of a holder would be received.
      place.line.refuseAsking();
      health.failed(error);
      if (isRefusal(error))
        place.line.refuseAll(() => new LockUnavailableError(name, what, error, nounOf(place.kind)));
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
   * not all try before they queue. Only where each caller has its own place.
   */
  mayAsk(place: Place, mode: "try" | "queue"): boolean {
    const { wake } = place.kind;
    if (wake.by === "grant" && !wake.solitary) return true;
    const isNew = place.state.word === "idle";
    if (mode === "queue") return this.firstTries === 0 && !(isNew && this.subscribing > 0);
    // After a failure, assume nothing.
    return !isNew || this.all.size < 2 || this.health.failures > 0;
  }

  firstTried(): void {
    this.firstTries--;
    this.subscribed();
  }

  /** The subscription is acknowledged, or not to be had. Callers start in the order in which they came. */
  subscribed(): void {
    // Before the last first try is answered, `mayAsk` would send all of them back.
    if (!this.mayQueue || this.firstTries > 0) return;
    for (const place of [...this.all]) if (place.isSubscribing) place.ask();
  }

  /** A message may have been missed, or the connection is back. */
  lookAgain(): void {
    for (const place of [...this.all]) place.lookAgain();
  }

  // ---- callers that wait for their own process

  /** This caller waits for one of its own client. */
  awaitSelfWait(caller: Waiter): void {
    // Callers that want the result of a run wait for it on purpose.
    if (this.kind.protocol === "remember") return;
    this.#selfWait ??= new CallTimer(() => this.#selfWaits());
    if (!isSet(this.#selfWait) && !caller.isWarned) this.port.timers.set(this.#selfWait, selfWaitAt(caller));
  }

  /** The first such caller may not be the one for which the timer was set. */
  #selfWaits(): void {
    const holder = this.#shared?.holder ?? this.#otherShared?.holder;
    const caller = holder && selfWaiter(this, holder);
    if (!caller || caller.isWarned) return;
    if (clocks.mono.now() < selfWaitAt(caller)) this.awaitSelfWait(caller);
    else this.port.selfWait.warn(this.name, caller, "this client");
  }

  // ---- its end

  leaveAll(reason: (kind: LockKind) => unknown): void {
    for (const place of [...this.all]) place.leaveAll(() => reason(place.kind));
  }

  /** Refuses callers of a kind that have waited since before then: more tries would end the same way. */
  refuseSince(kind: LockKind, before: number, error: () => Error): void {
    for (const place of [...this.all])
      if (place.kind === kind)
        for (const caller of [...place.line]) if (caller.since < before) caller.aborted(error());
  }

  /** Messages that say that another process wants the lock may have been missed. */
  mayBeWanted(): void {
    const at = clocks.mono.now();
    for (const { kind, hold } of this.all) if (hold && (kind.hasStays || hold.lingers)) hold.want(at);
    for (const hold of this.#holds ?? []) hold.mayBeWanted(at);
  }
}
