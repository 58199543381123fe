import { acquiring, holding } from "../api/channels.ts";
import { ClientClosedError, type LockTimeoutError, LockUnavailableError } from "../api/errors.ts";
import { type Caller, type Events, ofCall } from "../api/events.ts";
import { SERVED } from "../api/give-up.ts";
import { nounOf } from "../api/wording.ts";
import { Cleanup } from "../core/cleanup.ts";
import { Hold, LabelledHold } from "../core/lease/hold.ts";
import type { SharedLease } from "../core/lease/shared-lease.ts";
import type { Terms } from "../core/lease/terms.ts";
import { Watchdog } from "../core/lease/watchdog.ts";
import type { Leavable, LockKind, Withdrawer } from "../core/lock-kind.ts";
import type { Expecting, Port } from "../core/port.ts";
import { Resource } from "../core/resource.ts";
import { LONGEST_ENTRY_TTL } from "../core/schedule.ts";
import { Stays } from "../core/stays.ts";
import { TryResource } from "../core/try-resource.ts";
import { type AcquireRequest, Waiter } from "../core/waiter.ts";
import { HoldIds } from "../redis/hold-ids.ts";
import type { Audience, ConnectionListener, Subscriptions, Transport } from "../redis/transport.ts";
import { clocks } from "../util/clock.ts";
import { detached } from "../util/detached.ts";
import { clearInterval, setInterval } from "../util/real-timers.ts";
import { CallTimer, TIMER_MAX, Timers } from "../util/timers.ts";
import { closeManager } from "./close.ts";
import { DeafReports } from "./deaf-reports.ts";
import { GrantInbox } from "./grant-inbox.ts";
import { HolderQueries } from "./holder-queries.ts";
import { SelfWait } from "./self-wait.ts";
import { follow } from "./telemetry/following.ts";
import { WantedSignals } from "./wanted-signals.ts";

/**
 * All locks of a client that are in use, and what they share. The only way in is `enter`. Protects callers
 * from waiting forever: when the client closes, or its connection ends for good, all are refused;
 * when a connection comes back, all re-check.
 */
export class LockManager implements Port {
  readonly clientId: string;
  readonly commands: Transport;
  readonly events: Events;
  readonly window: number;
  readonly timers = new Timers(true);
  readonly watchdog: Watchdog;
  readonly inbox: GrantInbox;
  readonly selfWait: SelfWait;
  readonly cleanup: Cleanup;
  readonly deaf: DeafReports;
  readonly stays: Stays;
  readonly holderQueries: HolderQueries = new HolderQueries(this);
  readonly wanted = new WantedSignals(this);
  /** Notified of what happens to the connections, after the places. */
  readonly listeners = new Set<ConnectionListener>();
  waiting = 0;
  isSweeping = false;
  isClosed = false;
  /** The locks in use, by protocol and name. */
  readonly #resources = new Map<string, Map<string, Resource>>();
  /**
   * For each protocol that grants by message, a kind whose `withdraw` understands grants that no
   * caller expects.
   */
  readonly #granting = new Map<LockKind["protocol"], LockKind>();
  readonly #ids: HoldIds;
  #calls = 0;
  readonly #sweeper = new CallTimer(() => this.#sweep());
  #keepAlive: NodeJS.Timeout | undefined;
  #whenEmpty: (() => void) | null = null;

  /** `subscribe`: creates the subscriptions. */
  constructor(
    commands: Transport,
    subscribe: (audience: Audience) => Subscriptions,
    clientId: string,
    window: number,
    events: Events,
  ) {
    this.clientId = clientId;
    // Until no copy of a hold's commands can queue it, and no such entry can still be granted.
    this.#ids = new HoldIds(commands.replyTimeout + LONGEST_ENTRY_TTL);
    this.commands = commands;
    this.window = window;
    this.events = events;
    this.deaf = new DeafReports(events);
    this.watchdog = new Watchdog(events);
    this.selfWait = new SelfWait(this.watchdog, events);
    this.cleanup = new Cleanup(commands, this.timers);
    const isWanted = (): boolean => this.waiting > 0 || this.wanted.leases.size > 0;
    this.inbox = new GrantInbox(
      (isOwn) => subscribe({ isOwn, isWanted, deaf: this.deaf }),
      commands.keys.channels(clientId),
      {
        isMade: (id) => this.#ids.has(id),
        unexpected: (id, key, ttl) => this.#leaveUnexpected(id, key, ttl),
        settled: () => {
          if (!commands.isAway) this.subscribed();
        },
      },
    );
    this.stays = new Stays(this);
    // RACE: a recall may have been lost with the subscription, and the answer to a command sent
    // before says that no caller waits. So every hold counts as wanted, even one whose command is
    // unanswered.
    this.inbox.subscriptions.onGap = () => {
      this.inbox.recovered();
      this.#mayBeWanted();
      this.wanted.askAgain();
      this.#lookAgain();
      for (const one of this.listeners) one.missed();
    };
    commands.onLost = () => this.#mayBeWanted();
    commands.onReconnect = () => {
      this.#lookAgain();
      void this.inbox.subscriptions.recount();
      for (const one of this.listeners) one.reconnected();
    };
    commands.onEnd = () => {
      this.refuseAll((name, kind) => ended(name, kind, commands));
      for (const one of this.listeners) one.disconnected();
    };
  }

  // ---- callers

  /**
   * Waits up to `wait` ms for the lock, and resolves with what `take` returns for it. Null: another
   * client held it all the time.
   */
  enter<T>(
    kind: LockKind,
    name: string,
    request: AcquireRequest,
    take: (lease: SharedLease) => T,
  ): Promise<T | null> {
    const { terms, wait, signal, by, batchedTry, passes = handoffsOf(kind, terms) } = request;
    if (!by && (acquiring.hasSubscribers || holding.hasSubscribers))
      return this.#enterFollowed(kind, name, request, take);
    // RACE: before any event, because its listener may make a call, which needs another number.
    const caller = by ?? { call: ++this.#calls, kind: kind.eventKind };
    try {
      if (this.isClosed) throw new ClientClosedError(name);
      if (this.commands.ended) throw ended(name, kind, this.commands);
      if (signal?.aborted) throw signal.reason;
    } catch (error) {
      const whole = { ...caller, units: terms.permits?.units };
      if (caller.kind !== "multi") this.events.tellGiveUp(name, whole, clocks.mono.now(), wait, error);
      return Promise.reject(error);
    }
    const known = this.#resources.get(kind.protocol)?.get(name);
    // It is here since another caller has left it: no round trip.
    const lease = known?.takeIn(kind, { terms, passes }, caller);
    if (lease) {
      if (batchedTry) batchedTry.hold = lease.hold;
      return Promise.resolve(take(lease));
    }
    let settle!: (value: unknown) => void;
    // A closure keeps all that it uses; this one uses one variable.
    const result = new Promise<T | null>((resolve) => {
      settle = resolve as typeof settle;
    });
    const resource = known ?? this.#newResource(kind, name);
    try {
      const place = resource.place(kind);
      const waiter = new Waiter(place, caller, request, passes, take, settle);
      request.came?.(waiter);
      place.join(waiter);
      if (this.wanted.leases.size > 0 && wait > 0) this.wanted.came(kind, name, waiter);
    } catch (error) {
      resource.endUnused();
      return Promise.reject(error);
    }
    return result;
  }

  /**
   * Used while a diagnostics channel has subscribers. `by` names the caller, so that the call is
   * followed once.
   */
  #enterFollowed<T>(
    kind: LockKind,
    name: string,
    request: AcquireRequest,
    take: (lease: SharedLease) => T,
  ): Promise<T | null> {
    const { terms, wait } = request;
    const by = { ...this.newCaller(kind.eventKind), units: terms.permits?.units };
    const enter = (got: (lease: SharedLease) => void): Promise<T | null> =>
      this.enter(kind, name, { ...request, by }, (lease) => {
        got(lease);
        return take(lease);
      });
    // A call that resolves with something else than a lease has the result of another run.
    const without = (result: T | null): Error | null => (result === null ? null : SERVED);
    return follow(this.events, by, { name, wait, lease: terms.lease }, enter, without);
  }

  /** One more call, for its events. */
  newCaller(kind: Caller["kind"]): Caller {
    return { call: ++this.#calls, kind };
  }

  /** The callers of this client that wait for a lock. */
  *waitersOf({ protocol }: { readonly protocol: string }, name: string): Iterable<Waiter> {
    for (const waiting of this.#resources.get(protocol)?.get(name) ?? []) yield waiting;
  }

  /** Which process holds a lock, as far as this client knows without a round trip. */
  holderOf({ protocol }: LockKind, name: string): LockTimeoutError["heldBy"] {
    return this.selfWait.leaseOf(protocol, name) ? "this process" : "somebody else";
  }

  /**
   * No new callers, and waiters are refused. Holders get `grace` ms, then the remaining leases are
   * taken from them. `beside`: closes everything that is in no resource.
   */
  async close(grace: number, beside = async (): Promise<void> => {}): Promise<void> {
    this.isClosed = true;
    this.stays.close();
    this.refuseAll((name) => new ClientClosedError(name));
    await closeManager(this, Promise.all([this.#emptied(), beside()]), grace);
    clearInterval(this.#keepAlive);
  }

  refuseAll(error: (name: string, kind: LockKind) => Error): void {
    for (const one of [...this.resources()]) one.leaveAll((kind) => error(one.name, kind));
  }

  // ---- the locks in use

  *resources(): Iterable<Resource> {
    for (const resources of this.#resources.values()) yield* resources.values();
  }

  #newResource(kind: LockKind, name: string): Resource {
    let resources = this.#resources.get(kind.protocol);
    if (!resources) {
      resources = new Map();
      this.#resources.set(kind.protocol, resources);
      if (kind.wake.by === "grant") this.#granting.set(kind.protocol, kind);
    }
    const resource =
      kind.wake.by === "grant" ? new Resource(kind, name, this) : new TryResource(kind, name, this);
    resources.set(name, resource);
    return resource;
  }

  left(lock: { readonly kind: LockKind; readonly name: string }): void {
    const { kind, name } = lock;
    const resources = this.#resources.get(kind.protocol);
    if (resources?.get(name) === lock) resources.delete(name);
    if (this.#whenEmpty) this.#tellEmpty();
  }

  #emptied(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenEmpty = resolve;
      this.#tellEmpty();
    });
  }

  #tellEmpty(): void {
    if (!this.#whenEmpty) return;
    for (const one of this.resources()) if (one.isUnderWay) return;
    this.#whenEmpty();
  }

  // ---- what they share

  newHold({ wake }: LockKind, name: string, expecting: Expecting, label?: string): Hold {
    // A lock that is granted by message names the channel for it.
    const owner = wake.by === "grant" ? this.inbox.channelOf(name) : this.clientId;
    const id = this.#ids.next(owner);
    const { made } = this.#ids;
    const hold = label === undefined ? new Hold(id, name, made) : new LabelledHold(id, name, made, label);
    this.inbox.expect(hold, expecting);
    return hold;
  }

  leave(kind: Withdrawer, hold: Hold): void {
    this.inbox.forget(hold);
    this.wanted.ended(hold);
    this.cleanup.add(kind, hold, hold.mayLive);
  }

  /**
   * R3: no caller has this hold, or waits with it, so the lock must go to the next waiter.
   *
   * RACE: the network delivers a copy of an acquire after its hold has ended. The copy owns the
   * lock, and only the recalls of those that wait for it report that (`ttl` null).
   *
   * RACE: the message crosses the release of its hold. If the server does not know that script, the
   * release is sent once more, after the withdrawal: it would find nothing, and report a loss. So
   * the withdrawal waits for the answer. (A recall comes again if the hold still owns the lock then.)
   */
  #leaveUnexpected(id: string, key: string, ttl: number | null): void {
    const lock = this.commands.keys.granted(key);
    const kind = lock && this.#granting.get(lock.protocol);
    if (!kind || (ttl === null && this.isNamed(id))) return;
    const withdraw = async (hold: Leavable): Promise<void> => {
      if (this.isNamed(id)) throw new Error("a command about it is under way");
      await kind.withdraw(hold);
    };
    // Each re-check of a waiter sends the recall again: the withdrawal needs no long life.
    this.cleanup.add({ withdraw }, { id, name: lock.name }, ttl ?? 0);
  }

  isNamed(id: string): boolean {
    for (const { argv } of this.commands.unanswered)
      if (argv.some((word) => typeof word === "string" && word.startsWith(id))) return true;
    return false;
  }

  subscribed(): void {
    for (const one of [...this.resources()]) one.subscribed();
  }

  #mayBeWanted(): void {
    for (const one of this.resources()) one.mayBeWanted();
    this.stays.endAll();
  }

  #lookAgain(): void {
    for (const one of [...this.resources()]) one.lookAgain();
  }

  /** Waiting callers keep the process alive; nothing else of this client does. */
  sweepSoon(): void {
    this.isSweeping = true;
    this.#keepAlive ??= detached(() => setInterval(() => {}, TIMER_MAX));
    this.#keepAlive.ref();
    this.timers.set(this.#sweeper, clocks.mono.now() + SWEEP);
  }

  #sweep(): void {
    this.isSweeping = false;
    if (this.waiting === 0) this.#keepAlive?.unref();
  }

  tellWait(name: string, { call, kind, units, since }: Waiter): void {
    if (!this.events.isUsed || !this.events.hears("wait")) return;
    const caller = { ...ofCall({ name, kind, call, units }), waitedFor: clocks.mono.now() - since };
    this.events.tell("wait", { ...caller, heldBy: "unknown" });
  }

  gaveUp(name: string, waiter: Waiter, error: unknown): void {
    const wait = waiter.isAsking ? 0 : waiter.wait;
    if (waiter.kind !== "multi") this.events.tellGiveUp(name, waiter, waiter.since, wait, error);
  }
}

/** How many local hand-offs a lock allows that does not say it. */
const handoffsOf = (kind: LockKind, { linger }: Terms): number =>
  (linger > 0 ? kind.lingeringHandoffs : undefined) ?? kind.localHandoffs;

/** After how many ms it is checked whether callers still wait: they come and go many times in that. */
const SWEEP = 50;

const ended = (name: string, kind: LockKind, commands: Transport): LockUnavailableError =>
  new LockUnavailableError(name, "", commands.trouble(), nounOf(kind));
