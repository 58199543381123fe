import { hasOneSlotPerLock } from "./cluster/slots.ts";
import { quote } from "./errors.ts";
import { Events, type LockEvents } from "./events.ts";
import type { Keys } from "./keys.ts";
import { handoffLock } from "./locks/handoff.ts";
import type { Lock } from "./locks/lock.ts";
import { redissonLock } from "./locks/redisson.ts";
import { ScopedLock } from "./locks/scoped-lock.ts";
import {
  type CloseOptions,
  checkClientOptions,
  checkGrace,
  checkName,
  type LockClientOptions,
  type Settings,
} from "./options.ts";
import { newClientId } from "./random.ts";
import { type ClusterLike, isCluster, type RedisLike } from "./redis-like.ts";
import { Scope, Scopes } from "./scope/scope.ts";
import { Commands } from "./scripts/commands.ts";
import { Replication } from "./scripts/replication.ts";
import type { LockKind } from "./waiting/kind.ts";
import { Room } from "./waiting/room.ts";

/**
 * The locks of one process on one Redis. Made by `createLockClient`; one per process is right, and more are fine.
 *
 * @example
 * const locks = createLockClient(new Redis());
 * await locks.lock("order:42").withLock(async (lease) => charge(order, { fence: lease.token }));
 * await locks.close();
 */
export class LockClient {
  readonly #own: RedisLike | ClusterLike | null;
  readonly #settings: Settings;
  readonly #events = new Events();
  readonly #scopes = new Scopes();
  readonly #room: Room;
  readonly #keys: Keys;
  readonly #replication: Replication | null;
  readonly #kinds: { readonly lock: LockKind; readonly fair: LockKind; readonly redisson: LockKind };
  #closing: Promise<void> | null = null;

  /** @internal */
  constructor(redis: RedisLike | ClusterLike, settings: Settings) {
    this.#settings = settings;
    this.#own = settings.connection === "own" ? duplicate(redis) : null;
    // ioredis prints errors that nobody listens to; commands tell about them, with the lock they hit.
    this.#own?.on("error", () => {});
    const commands = new Commands(this.#own ?? redis, settings.replyTimeout);
    this.#keys = commands.keys;
    const { grantWindow, localPasses, replicas, replicaTimeout, replyTimeout } = settings;
    this.#replication =
      replicas > 0 ? new Replication(this.#own ?? redis, replicas, replicaTimeout, replyTimeout) : null;
    this.#room = new Room(this.#own ?? redis, commands, newClientId(), grantWindow, this.#events);
    this.#kinds = {
      lock: handoffLock(commands, this.#replication, false, localPasses, grantWindow),
      fair: handoffLock(commands, this.#replication, true, localPasses, grantWindow),
      redisson: redissonLock(commands, this.#replication),
    };
  }

  /** `host:pid:random`: how this client appears as a holder or a waiter in Redis. */
  get id(): string {
    return this.#room.clientId;
  }

  /**
   * The default lock: parked waiters, hand-off on unlock, passes inside the process.
   *
   * @param name 1 to 512 bytes of UTF-8; any character.
   * @throws TypeError or RangeError for a bad name.
   */
  lock(name: string): Lock {
    return this.#lock(name, this.#kinds.lock);
  }

  /** The same lock, first come first served over all processes (reconnects apart). Shares its keys with `lock(name)`. */
  fairLock(name: string): Lock {
    return this.#lock(name, this.#kinds.fair);
  }

  /**
   * Redisson's plain `RLock`, to share a lock with Java services: its keys, channel and messages. No fencing tokens.
   *
   * @throws RangeError in Cluster also for names such as `a{b`, which Redisson can lock there and not unlock.
   */
  redissonLock(name: string): Lock {
    if (!this.#keys.fitsRedisson(checkName(name))) {
      const where = `in Cluster Redisson's keys of ${quote(name)} have different hash slots`;
      const cure = /[{}]/.test(name)
        ? "use a name without braces"
        : `the keyPrefix ${quote(this.#keys.prefix)} must have no braces, or a whole tag`;
      throw new RangeError(`Cannot create a lock: ${where}; ${cure}`);
    }
    return this.#lock(name, this.#kinds.redisson);
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
    this.#closing ??= this.#room.close(grace).finally(() => {
      this.#replication?.close();
      this.#own?.disconnect();
    });
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #lock(name: string, kind: LockKind): Lock {
    return new ScopedLock(checkName(name), kind, this.#room, this.#scopes, this.#settings.leaseTime);
  }
}

/**
 * Creates a lock client on an ioredis connection (5.11 or later, or 6): to a single server, a Sentinel group or a Cluster.
 * The connection carries the commands and stays yours; a subscriber connection (in Cluster one to each primary in use) is
 * opened at the first wait. Nothing is sent before the first lock is taken.
 *
 * @throws TypeError or RangeError for bad arguments.
 * @example
 * import { Redis } from "ioredis";
 * const locks = createLockClient(new Redis());
 */
export function createLockClient(redis: RedisLike | ClusterLike, options?: LockClientOptions): LockClient {
  const settings = checkClientOptions(options);
  if (
    typeof redis !== "object" ||
    redis === null ||
    typeof redis.evalsha !== "function" ||
    typeof redis.duplicate !== "function"
  ) {
    throw new TypeError("Cannot create a lock client: redis must be an ioredis connection, new Redis(…)");
  }
  const { keyPrefix = "" } = redis.options;
  if (isCluster(redis) && !hasOneSlotPerLock(keyPrefix)) {
    throw new TypeError(
      `Cannot create a lock client: behind the keyPrefix ${quote(keyPrefix)} the keys of one lock have different hash slots; use one without "{}"`,
    );
  }
  return new LockClient(redis, settings);
}

function duplicate(redis: RedisLike | ClusterLike): RedisLike | ClusterLike {
  const options = { lazyConnect: false, enableOfflineQueue: true };
  return isCluster(redis) ? redis.duplicate([], options) : redis.duplicate(options);
}
