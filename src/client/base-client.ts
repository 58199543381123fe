import type { Check } from "../api/check.ts";
import type { CommonClient } from "../api/client.ts";
import { ClientClosedError } from "../api/errors.ts";
import { checkEvent, Events, type LockEvents } from "../api/events.ts";
import { encodeLabel } from "../api/label.ts";
import type { Lock } from "../api/lock.ts";
import type { MultiLock } from "../api/multi-lock.ts";
import { CHECK, type CheckOptions, CLOSE, type CloseOptions } from "../api/options.ts";
import { RENAMED_ONCE } from "../api/renamed.ts";
import type { Semaphore } from "../api/semaphore.ts";
import { checkName, checkOptions } from "../api/validate.ts";
import type { LockKind } from "../core/lock-kind.ts";
import { SHORT_LEASE } from "../defaults.ts";
import { CallRules, type LockSettings } from "../locks/arguments.ts";
import { CountingSemaphore, type PermitKind } from "../locks/counting-semaphore.ts";
import type { Detector } from "../locks/deadlocks/detector.ts";
import { orderMembers } from "../locks/members.ts";
import { OrderedMultiLock } from "../locks/ordered-multi-lock.ts";
import { ReentrantLock } from "../locks/reentrant-lock.ts";
import { Scope } from "../locks/scope.ts";
import { Scopes } from "../locks/scopes.ts";
import type { Audience, Subscriptions, Transport } from "../redis/transport.ts";
import { LockManager } from "../runtime/lock-manager.ts";
import { newClientId } from "../util/random.ts";
import { warn } from "../util/warn.ts";
import { type Checkable, check } from "./check/check.ts";

/** The parts that make a client. */
export interface Parts {
  readonly transport: Transport;
  readonly subscribe: (audience: Audience) => Subscriptions;
  /** Its label for people. Undefined: none. */
  readonly label: string | undefined;
  /** Where it seems to run, as `host:pid`. Left out: here. */
  readonly process?: string | undefined;
  /** The grant window, in ms. */
  readonly window: number;
  /** The lease when a call names none, in ms. */
  readonly leaseTime: number;
  /** The longest lease possible, in ms. */
  readonly longestLease?: number;
  /**
   * How many ms an unlocked lock may stay with this process, unless its own options say. Left out:
   * 0.
   */
  readonly linger?: number;
  /**
   * May calls re-enter what their scope holds, unless their lock or they themselves say otherwise?
   */
  readonly reentrant: boolean;
  /** Finds callers that wait for each other. Left out: none are searched for. */
  readonly detector?: (locks: LockManager) => Detector | null;
  /** What `check()` examines. */
  readonly checkable: Checkable;
  /** How many replicas must have a lock. */
  readonly replicas: number;
  /** Closes what this client opened. */
  readonly closed: () => void;
}

/** What every client has, whatever carries its commands: scopes, events, `close()`. */
export abstract class BaseClient implements CommonClient {
  readonly #events: Events;
  readonly #scopes: Scopes;
  readonly #locks: LockManager;
  readonly #parts: Parts;
  /**
   * The rules of locks without options, and of locks that are never cached; the same object if the
   * client caches none.
   */
  readonly #rules: CallRules;
  readonly #unkept: CallRules;
  #closing: Promise<void> | null = null;

  /** @internal */
  constructor(parts: Parts) {
    warnOfShortLease(parts.leaseTime);
    this.#parts = parts;
    const id = newClientId(encodeLabel(parts.label ?? null), parts.process);
    this.#events = new Events(id);
    const { linger = 0 } = parts;
    this.#rules = this.#newRules({ linger, reentrant: parts.reentrant });
    this.#unkept = linger === 0 ? this.#rules : this.#newRules({ linger: 0, reentrant: parts.reentrant });
    this.#locks = new LockManager(parts.transport, parts.subscribe, id, parts.window, this.#events);
    this.#scopes = new Scopes(parts.detector?.(this.#locks));
    if (!parts.reentrant) this.#scopes.notesCallSites = true;
  }

  get id(): string {
    return this.#locks.clientId;
  }

  toJSON(): object {
    return { id: this.id, closed: this.#closing !== null };
  }

  async scope<T>(body: () => T | PromiseLike<T>): Promise<T> {
    if (typeof body !== "function") throw new TypeError("Cannot open a scope: it takes a function");
    const scope = new Scope(this.#scopes.current(), true);
    try {
      return await this.#scopes.run(scope, body);
    } finally {
      await scope.end((error) => this.#events.report(error));
    }
  }

  outside<T>(body: () => T): T {
    if (typeof body !== "function")
      throw new TypeError("Cannot run anything outside of the scopes: it takes a function");
    return this.#scopes.outside(body);
  }

  on<K extends keyof LockEvents>(event: K, listener: LockEvents[K]): this {
    checkEvent(event);
    this.#events.on(event, listener);
    return this;
  }

  once<K extends keyof LockEvents>(event: K, listener: LockEvents[K]): this {
    if (typeof listener !== "function") throw new TypeError(RENAMED_ONCE);
    checkEvent(event);
    this.#events.once(event, listener);
    return this;
  }

  off<K extends keyof LockEvents>(event: K, listener: LockEvents[K]): this {
    this.#events.off(event, listener);
    return this;
  }

  /** The lock that every client has. */
  abstract lock(name: string): Lock;

  async check(options?: CheckOptions): Promise<Check> {
    const rules = { ...CHECK, replicas: { ...CHECK.replicas, fallback: this.#parts.replicas } };
    const wanted = checkOptions("Cannot check the lock client", rules, options);
    if (this.#closing) throw new ClientClosedError(null);
    const parts = { inbox: this.#locks.inbox, clientId: this.id, lock: (name: string) => this.lock(name) };
    return this.#scopes.outside(() => check(this.#parts.checkable, parts, wanted));
  }

  async close(options?: CloseOptions): Promise<void> {
    const { grace } = checkOptions("Cannot close the lock client", CLOSE, options);
    if (this.#closing) return this.#closing;
    // RACE: a listener that `close()` calls may call it again before there is a promise to return.
    let ends = (_: Promise<void>): void => {};
    this.#closing = new Promise((resolve) => {
      ends = resolve;
    });
    ends(this.#close(grace));
    return this.#closing;
  }

  async #close(grace: number): Promise<void> {
    try {
      await this.#locks.close(grace, () => this.closeBeside());
    } finally {
      this.#scopes.close();
      this.#parts.closed();
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * Ends everything that this client has besides its locks. Resolves when that is done. @internal
   */
  protected async closeBeside(): Promise<void> {}

  /** `how` left out: the client's options. @internal */
  protected lockOf(name: string, kind: LockKind, how?: LockSettings): Lock {
    const rules = how ? this.#rulesOf(how) : this.#rules;
    return new ReentrantLock(kind, checkName(name), this.#locks, this.#scopes, rules);
  }

  /** The rules that all such locks share, if the client has them. */
  #rulesOf({ passes, linger = this.#rules.linger, reentrant = this.#rules.reentrant }: LockSettings) {
    if (!reentrant) this.#scopes.notesCallSites = true;
    const rules = linger === 0 ? this.#unkept : this.#rules;
    const isUsual = passes === undefined && linger === rules.linger && reentrant === rules.reentrant;
    return isUsual ? rules : this.#newRules({ passes, linger, reentrant });
  }

  #newRules(how: LockSettings): CallRules {
    const { leaseTime, longestLease } = this.#parts;
    return new CallRules(leaseTime, longestLease, how);
  }

  /** `passes` left out: the kind's number of local hand-offs. @internal */
  protected semaphoreOf(name: string, kind: PermitKind, permits: number | null, passes?: number): Semaphore {
    const checked = checkName(name, "Cannot create a semaphore");
    const { leaseTime, longestLease } = this.#parts;
    const rules = new CallRules(leaseTime, longestLease, { passes }, false);
    return new CountingSemaphore(kind, checked, permits, this.#locks, this.#scopes, rules);
  }

  /** @internal */
  protected multiLockOf(members: unknown, kind: LockKind, options: unknown): MultiLock {
    const memberOf = (one: unknown) => {
      if (typeof one === "string") return { kind, name: checkName(one), reentrant: this.#parts.reentrant };
      return typeof one === "object" && one !== null ? ReentrantLock.memberOf(one, this.#locks) : null;
    };
    const ordered = orderMembers(members, memberOf, options);
    return new OrderedMultiLock(ordered, this.#locks, this.#scopes, this.#unkept);
  }

  /** @internal */
  protected get isClosed(): boolean {
    return this.#closing !== null;
  }

  /** @internal */
  protected get scopes(): Scopes {
    return this.#scopes;
  }

  /** For the subclass's lock kinds. @internal */
  protected get locks(): LockManager {
    return this.#locks;
  }
}

let isTold = false;

/** Warns, once in a process, of a lease that was probably meant in seconds. */
function warnOfShortLease(leaseTime: number): void {
  if (leaseTime >= SHORT_LEASE || isTold) return;
  isTold = true;
  warn(
    `A lock client was created with a leaseTime of ${leaseTime} ms, which a slow answer of Redis or a busy event loop can outlast: ` +
      "it is in milliseconds, and 30 seconds are 30_000.",
    "LOCK_SHORT_LEASE",
  );
}
