import { checkName } from "./checks.ts";
import { Events, type LockEvents } from "./events.ts";
import type { Lock } from "./locks/lock.ts";
import { orderMembers } from "./locks/members.ts";
import type { MultiLock } from "./locks/multi-lock.ts";
import { OrderedLocks } from "./locks/ordered-locks.ts";
import { ScopedLock } from "./locks/scoped-lock.ts";
import { type CloseOptions, checkGrace } from "./options.ts";
import { newClientId } from "./random.ts";
import { Scope, Scopes } from "./scope/scope.ts";
import type { Transport } from "./scripts/transport.ts";
import type { LockKind } from "./waiting/kind.ts";
import { Room } from "./waiting/room.ts";
import type { Audience, Subscriptions } from "./waiting/subscriptions.ts";

/** What a client works with. */
export interface Parts {
  readonly transport: Transport;
  readonly subscribe: (audience: Audience) => Subscriptions;
  /** The grant window, in ms. */
  readonly window: number;
  /** The lease when a call names none, in ms. */
  readonly leaseTime: number;
  /** Closes what this client opened. */
  readonly closed: () => void;
}

/** What every client has, whatever carries its commands: scopes, events, an end. */
export abstract class BaseClient {
  readonly #events = new Events();
  readonly #scopes = new Scopes();
  readonly #room: Room;
  readonly #parts: Parts;
  #closing: Promise<void> | null = null;

  /** @internal */
  constructor(parts: Parts) {
    this.#parts = parts;
    this.#room = new Room(parts.transport, parts.subscribe, newClientId(), parts.window, this.#events);
  }

  /** `host:pid:random`: how this client appears as a holder or a waiter in Redis. */
  get id(): string {
    return this.#room.clientId;
  }

  /**
   * Runs a function as one scope: inside it, `tryLock` and `lock` of a lock that the scope holds re-enter it by count.
   * What is still held when it ends is released, and reported as an `error` event.
   *
   * @example
   * await locks.scope(async () => {
   *   await using outer = await lock.lock();
   *   await using inner = await lock.lock(); // the same token; no deadlock
   * });
   */
  async scope<T>(body: () => T | PromiseLike<T>): Promise<T> {
    if (typeof body !== "function") throw new TypeError("Cannot open a scope: it takes a function");
    const scope = new Scope(this.#scopes.current());
    try {
      return await this.#scopes.run(scope, body);
    } finally {
      await scope.end((error) => this.#events.report(error));
    }
  }

  /** Adds a listener. See `LockEvents` for what is told. */
  on<K extends keyof LockEvents>(event: K, listener: LockEvents[K]): this {
    this.#events.on(event, listener);
    return this;
  }

  /** Adds a listener for the next event only. */
  once<K extends keyof LockEvents>(event: K, listener: LockEvents[K]): this {
    this.#events.once(event, listener);
    return this;
  }

  /** Removes a listener. */
  off<K extends keyof LockEvents>(event: K, listener: LockEvents[K]): this {
    this.#events.off(event, listener);
    return this;
  }

  /**
   * No new acquisitions from now on; waiters are rejected with ClientClosedError; holders get `grace` ms (default
   * 5 000) to unlock, then their leases are lost (reason "closed") and released. Closes only connections that this
   * client opened: quit your own afterwards.
   */
  async close(options?: CloseOptions): Promise<void> {
    const grace = checkGrace(options);
    this.#closing ??= this.#room.close(grace).finally(this.#parts.closed);
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal */
  protected lockOf(name: string, kind: LockKind): Lock {
    return new ScopedLock(checkName(name), kind, this.#room, this.#scopes, this.#parts.leaseTime);
  }

  /** @internal */
  protected multiLockOf(members: readonly (string | Lock)[], kind: LockKind): MultiLock {
    const ordered = orderMembers(members, (one) => {
      if (typeof one === "string") return { kind, name: checkName(one) };
      return typeof one === "object" && one !== null ? ScopedLock.memberOf(one, this.#room) : null;
    });
    return new OrderedLocks(ordered, this.#room, this.#scopes, this.#parts.leaseTime);
  }

  /** Withdraws a hold in the background (R3). @internal */
  protected withdraw(kind: LockKind, hold: Parameters<Room["withdraw"]>[1]): void {
    this.#room.withdraw(kind, hold);
  }
}
