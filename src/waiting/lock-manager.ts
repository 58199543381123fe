import { UNANSWERED } from "../defaults.ts";
import { ClientClosedError, LockError, LockUnavailableError, quote } from "../errors.ts";
import type { Caller, Events } from "../events.ts";
import { HoldIds } from "../hold-ids.ts";
import { Hold } from "../lease/hold.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import { Watchdog } from "../lease/watchdog.ts";
import type { Terms } from "../options.ts";
import { OVERTAKEN } from "../overtaken.ts";
import type { Audience, Subscriptions } from "../redis/subscriptions.ts";
import type { Transport } from "../redis/transport.ts";
import { atMost, onAbort } from "../util/abort.ts";
import { now } from "../util/clock.ts";
import { outside } from "../util/outside.ts";
import { TIMER_MAX, Timers } from "../util/timers.ts";
import { Cleanup } from "./cleanup.ts";
import { GrantInbox } from "./grant-inbox.ts";
import { Hearing } from "./hearing.ts";
import type { LockKind } from "./lock-kind.ts";
import { LockQueue } from "./lock-queue.ts";
import { RecheckGroup } from "./recheck-group.ts";
import { LONGEST_PATIENCE } from "./schedule.ts";
import { enlist } from "./self-wait.ts";
import { type Link, Waiter } from "./waiter.ts";
import type { WaitersOwner } from "./waiters.ts";

/** How a caller comes in. */
export interface Entrance {
  readonly terms: Terms;
  readonly wait: number;
  readonly signal: AbortSignal | undefined;
  /** Whose part it is, of a call that wants several locks, and says itself when it gives up. Left out: a call of its own. */
  readonly by?: Caller | undefined;
  /** How often the lock may have been passed on in this process before this caller gets it. Left out: as its kind has it. */
  readonly passes?: number | undefined;
  /** It is one of several tries that are sent together, with `wait` 0. */
  readonly link?: Link | undefined;
  /** Is told how to leave the line, for a call whose scope may get the lock by another call. */
  readonly leaving?: ((leave: () => void) => void) | undefined;
}

/** The waiting room of a client: every turn, and what they share. The only way in is `enter`. */
export class LockManager implements WaitersOwner {
  readonly clientId: string;
  readonly commands: Transport;
  readonly events: Events;
  readonly timers = new Timers(true);
  readonly watchdog: Watchdog;
  readonly hearing: Hearing;
  readonly mailbox: GrantInbox;
  /** The grant window in ms. */
  readonly window: number;
  readonly #withdrawals: Cleanup;
  readonly #turns = new Set<LockQueue>();
  /** Turns that all callers of a lock share, by kind and name. */
  readonly #shared = new Map<LockKind, Map<string, LockQueue>>();
  /** Parked places, where every caller has one of his own, by lock, in the order of parking. */
  readonly #siblings = new Map<string, RecheckGroup>();
  /** A kind whose `withdraw` understands grants that nobody expects. */
  #granting: LockKind | null = null;
  readonly #ids: HoldIds;
  #calls = 0;
  #waiting = 0;
  #keepAlive: NodeJS.Timeout | undefined;
  readonly #delist = enlist(this);
  #closed = false;
  #whenEmpty: (() => void) | null = null;

  /** `subscribe`: makes what carries messages. */
  constructor(
    commands: Transport,
    subscribe: (audience: Audience) => Subscriptions,
    clientId: string,
    window: number,
    events: Events,
  ) {
    this.clientId = clientId;
    // Until no copy of a hold's commands can queue it, and no such place can be granted any more.
    this.#ids = new HoldIds(commands.replyTimeout + LONGEST_PATIENCE);
    this.mailbox = new GrantInbox(
      (id) => this.#ids.has(id),
      (id, key, ttl) => this.#leave(id, key, ttl),
    );
    this.commands = commands;
    this.window = window;
    this.events = events;
    this.watchdog = new Watchdog(events);
    this.#withdrawals = new Cleanup(commands, this.timers);
    const isWanted = (): boolean => this.#waiting > 0;
    this.hearing = new Hearing(
      (isOwn) => subscribe({ isOwn, isWanted }),
      commands.keys.channels(clientId),
      this.mailbox.read,
    );
    this.hearing.onDeaf = () => {
      if (!commands.isAway) this.subscribed();
    };
    this.hearing.subscriptions.onGap = () => {
      this.hearing.recovered();
      this.#lookAgain();
    };
    commands.onReconnect = () => {
      this.#lookAgain();
      void this.hearing.subscriptions.recount();
    };
    commands.onEnd = () => {
      this.#refuseAll((name) => ended(name, commands));
    };
  }

  get replyTimeout(): number {
    return this.commands.replyTimeout;
  }

  /**
   * Waits up to `wait` ms for the lock, and resolves with what `take` makes of it. Null: somebody else held it all the
   * time.
   */
  enter<T>(
    kind: LockKind,
    name: string,
    { terms, wait, signal, by, leaving, link, passes = kind.localPasses }: Entrance,
    take: (tenure: SharedLease) => T,
  ): Promise<T | null> {
    return new Promise<T | null>((resolve, reject) => {
      const call = by?.call ?? ++this.#calls;
      const eventKind = by?.kind ?? kind.eventKind;
      try {
        this.#admit(name, signal);
      } catch (error) {
        if (!by) this.events.tellGiveUp(name, { call, kind: eventKind }, performance.now(), wait, error);
        throw error;
      }
      const turn = this.#turn(kind, name);
      const settle = resolve as (value: unknown) => void;
      const waiter = new Waiter(call, eventKind, terms, wait, passes, turn, {
        take,
        resolve: settle,
        reject,
      });
      if (link) waiter.link = link;
      if (signal) waiter.unlisten = onAbort(signal, () => turn.leave(waiter, signal.reason));
      leaving?.(() => turn.leave(waiter, OVERTAKEN));
      turn.join(waiter);
    });
  }

  /** No new callers, waiters are refused; holders get `grace` ms, then the rest is taken from them. */
  async close(grace: number): Promise<void> {
    this.#closed = true;
    this.#refuseAll((name) => new ClientClosedError(name));
    const patience = Math.min(grace, this.replyTimeout);
    const answerBy = performance.now() + patience;
    // Every turn ends: with its holder's unlock, or with the answer to the command that is on its way.
    await atMost(this.#emptied(), this.watchdog.size > 0 ? grace : patience);
    const isTaken = this.#takeLeases(grace);
    // One time for all answers: a Redis that did not answer while holders were waited for will not answer now. What is
    // taken only now gets the time of a first command; it is written all the same.
    const least = isTaken ? Math.min(grace, UNANSWERED) : 0;
    await atMost(this.#withdrawals.end(), Math.max(least, answerBy - performance.now()));
    this.hearing.subscriptions.close();
    this.commands.detach();
    this.timers.close();
    this.watchdog.close();
    this.#delist();
    clearInterval(this.#keepAlive);
  }

  /** Takes what is still held, and names it. With no grace that was what the caller wanted. */
  #takeLeases(grace: number): boolean {
    const tenures = [...this.watchdog.tenures()];
    if (tenures.length === 0) return false;
    if (grace > 0) this.events.report(leftBehind(tenures));
    for (const tenure of tenures) tenure.lose("closed");
    return true;
  }

  /** The callers of this client that wait for a lock, and for how many ms the first of them has. */
  waitersAt({ protocol }: LockKind, name: string): { waiting: number; longest: number | null } {
    let waiting = 0;
    let first = Number.POSITIVE_INFINITY;
    for (const turn of this.#turns) {
      if (turn.name !== name || turn.kind.protocol !== protocol) continue;
      for (const { since } of turn.waiters) {
        waiting++;
        first = Math.min(first, since);
      }
    }
    return { waiting, longest: waiting === 0 ? null : performance.now() - first };
  }

  /** One more call, for its events. */
  newCaller(kind: Caller["kind"]): Caller {
    return { call: ++this.#calls, kind };
  }

  // ---- what turns need

  /** R1: an id that was never used before. */
  newHold({ queues }: LockKind, name: string): Hold {
    // What is granted by message names the channel for it.
    return new Hold(this.#ids.next(queues ? this.hearing.grantChannel(name) : this.clientId), name, now());
  }

  /** A release is sent, which `close()` must see answered: its caller may end the connection right after. Call what it returns then. */
  releasing(): () => void {
    return this.#withdrawals.begin();
  }

  /** The hold is over, and whatever it is in Redis must go. */
  withdraw(kind: LockKind, hold: Hold): void {
    this.#withdrawals.add(kind, hold, hold.mayLive);
  }

  /** A channel is acknowledged, or must do without. All begin in the order in which they came, whoever is told first. */
  subscribed(): void {
    for (const turn of [...this.#turns]) turn.search.subscribed();
  }

  /** All callers of this client that wait for a lock. */
  *callers(kind: LockKind, name: string): Iterable<Waiter> {
    for (const turn of this.#turns)
      if (turn.kind.protocol === kind.protocol && turn.name === name) yield* turn.callers;
  }

  /** What a turn has heard counts for every caller of this client that has waited for the same lock since before then. */
  refuseSince({ kind, name }: LockQueue, before: number, error: () => Error): void {
    for (const turn of [...this.#turns])
      if (turn.kind === kind && turn.name === name) turn.leaveSince(before, error);
  }

  left(turn: LockQueue): void {
    this.#turns.delete(turn);
    if (turn.kind.solitary && this.#siblings.get(turn.name)?.leave() === 0) this.#siblings.delete(turn.name);
    this.#tellEmpty();
    const shared = this.#shared.get(turn.kind);
    if (shared?.get(turn.name) === turn) shared.delete(turn.name);
  }

  /** The places of this client at a lock where every caller has one of his own, for one more; null where they share one. */
  siblings(kind: LockKind, name: string): RecheckGroup | null {
    if (!kind.solitary) return null;
    let siblings = this.#siblings.get(name);
    if (!siblings) {
      siblings = new RecheckGroup();
      this.#siblings.set(name, siblings);
    }
    siblings.join();
    return siblings;
  }

  count(change: number): void {
    this.#waiting += change;
    // Waiting callers keep the process alive, and nothing else of this client does.
    if (this.#waiting === change) {
      this.#keepAlive ??= outside(() => setInterval(() => {}, TIMER_MAX));
      this.#keepAlive.ref();
    } else if (this.#waiting === 0) this.#keepAlive?.unref();
  }

  tellWait(name: string, waiter: Waiter): void {
    const { call, kind, since } = waiter;
    this.events.tell("wait", () => ({
      name,
      kind,
      call,
      holder: "unknown",
      waited: performance.now() - since,
    }));
  }

  /** A caller ended without the lock. */
  gaveUp(name: string, waiter: Waiter, error: unknown): void {
    if (waiter.kind !== "multi") this.events.tellGiveUp(name, waiter, waiter.since, waiter.wait, error);
  }

  #turn(kind: LockKind, name: string): LockQueue {
    if (kind.queues) this.#granting = kind;
    let shared = this.#shared.get(kind);
    if (!shared) {
      shared = new Map();
      this.#shared.set(kind, shared);
    }
    const known = kind.solitary ? undefined : shared.get(name);
    if (known) return known;
    const turn = new LockQueue(kind, name, this);
    this.#turns.add(turn);
    if (!kind.solitary) shared.set(name, turn);
    return turn;
  }

  /** R3: nobody waits with this hold any more, so the lock must go on to the next waiter. */
  #leave(id: string, key: string, ttl: number): void {
    const { keys } = this.commands;
    const name = keys.name(key);
    if (this.#granting && keys.prefix + keys.of(name).lock === key)
      this.#withdrawals.add(this.#granting, { id, name }, ttl);
  }

  #lookAgain(): void {
    for (const turn of [...this.#turns]) turn.search.lookAgain();
  }

  /** @throws when nobody may come in any more, or this caller has gone already. */
  #admit(name: string, signal: AbortSignal | undefined): void {
    if (this.#closed) throw new ClientClosedError(name);
    if (this.commands.ended) throw ended(name, this.commands);
    if (signal?.aborted) throw signal.reason;
  }

  #refuseAll(error: (name: string | null) => Error): void {
    for (const turn of [...this.#turns]) turn.leaveAll(() => error(turn.name));
  }

  #emptied(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenEmpty = resolve;
      this.#tellEmpty();
    });
  }

  #tellEmpty(): void {
    if (!this.#whenEmpty) return;
    for (const turn of this.#turns) if (turn.isUnderWay) return;
    this.#whenEmpty();
  }
}

function leftBehind(tenures: readonly SharedLease[]): LockError {
  const at = performance.now();
  const [first] = tenures;
  const held = tenures
    .slice(0, 10)
    .map(({ name, since }) => `${quote(name)} (for ${Math.round(at - since.mono)} ms)`)
    .join(", ");
  const more = tenures.length > 10 ? ` and ${tenures.length - 10} more` : "";
  const name = tenures.length === 1 && first ? first.name : null;
  const text = `The lock client was closed while these locks were still held, and released them: ${held}${more}. Unlock them before close(), or give their holders a longer grace.`;
  return new LockError("LOCK_LEFT_BEHIND", name, text);
}

const ended = (name: string | null, commands: Transport): LockUnavailableError =>
  new LockUnavailableError(
    name,
    "its Redis connection was closed for good (status 'end')",
    commands.trouble(),
  );
