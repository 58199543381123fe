import { BaseClient } from "./base-client.ts";
import { checkName } from "./checks.ts";
import { hasOneSlotPerLock } from "./cluster/slots.ts";
import { QUORUM_MIN } from "./defaults.ts";
import { quote } from "./errors.ts";
import type { Keys } from "./keys.ts";
import { handoffLock } from "./locks/handoff.ts";
import type { Lock } from "./locks/lock.ts";
import type { MultiLock } from "./locks/multi-lock.ts";
import { redissonLock } from "./locks/redisson.ts";
import { spinLock } from "./locks/spin.ts";
import {
  checkClientOptions,
  checkSpinOptions,
  type LockClientOptions,
  type Settings,
  type SpinLockOptions,
} from "./options.ts";
import { type ClusterLike, duplicate, isCluster, isConnection, type RedisLike } from "./redis-like.ts";
import { checkQuorumOptions, type QuorumClientOptions } from "./redlock/options.ts";
import { QuorumClient } from "./redlock/quorum-client.ts";
import { Commands } from "./scripts/commands.ts";
import { Replication } from "./scripts/replication.ts";
import type { LockKind } from "./waiting/kind.ts";
import { ShardedSubscriber } from "./waiting/sharded-subscriber.ts";
import { Subscriber } from "./waiting/subscriber.ts";

/**
 * The locks of one process on one Redis. Made by `createLockClient`; one per process is right, and more are fine.
 *
 * @example
 * const locks = createLockClient(new Redis());
 * await locks.lock("order:42").withLock(async (lease) => charge(order, { fence: lease.token }));
 * await locks.close();
 */
export class LockClient extends BaseClient {
  readonly #keys: Keys;
  readonly #kinds: Readonly<Record<"lock" | "fair" | "redisson" | "redissonFenced" | "spin", LockKind>>;

  /** @internal */
  constructor(given: RedisLike | ClusterLike, settings: Settings) {
    const redis = settings.connection === "own" ? duplicate(given) : given;
    const commands = new Commands(redis, settings.replyTimeout);
    const { leaseTime, grantWindow, localPasses, replicas, replicaTimeout, replyTimeout } = settings;
    const replication = replicas > 0 ? new Replication(redis, replicas, replicaTimeout, replyTimeout) : null;
    super({
      transport: commands,
      subscribe: (audience) =>
        isCluster(redis)
          ? new ShardedSubscriber(redis, audience, commands)
          : new Subscriber({ redis, isSharded: false, ...audience }, commands),
      window: grantWindow,
      leaseTime,
      closed: () => {
        replication?.close();
        if (redis !== given) redis.disconnect();
      },
    });
    this.#keys = commands.keys;
    this.#kinds = {
      lock: handoffLock(commands, replication, false, localPasses, grantWindow),
      fair: handoffLock(commands, replication, true, localPasses, grantWindow),
      redisson: redissonLock(commands, replication, false, localPasses),
      // Every holder needs a token of his own, and only Redis has the next one.
      redissonFenced: redissonLock(commands, replication, true, 0),
      spin: spinLock(commands, replication, localPasses),
    };
  }

  /**
   * The default lock: parked waiters, hand-off on unlock, passes inside the process.
   *
   * @param name 1 to 512 bytes of UTF-8; any character.
   * @throws TypeError or RangeError for a bad name.
   */
  lock(name: string): Lock {
    return this.lockOf(name, this.#kinds.lock);
  }

  /** The same lock, first come first served over all processes (reconnects apart). Shares its keys with `lock(name)`. */
  fairLock(name: string): Lock {
    return this.lockOf(name, this.#kinds.fair);
  }

  /**
   * Redisson's plain `RLock`, to share a lock with Java services: its keys, channel and messages. No fencing tokens.
   *
   * @throws RangeError in Cluster also for names such as `a{b`, which Redisson can lock there and not unlock.
   */
  redissonLock(name: string): Lock {
    this.#checkFitsRedisson(name);
    return this.lockOf(name, this.#kinds.redisson);
  }

  /**
   * Redisson's `RFencedLock`, to share a lock and its fencing tokens with Java services. The token is Redisson's counter:
   * it grows with every change of holder, on both sides, and starts again at 1 where Redis loses it. Java raises it also
   * when it enters again; here that keeps the token. The same key as `redissonLock(name)`: use one of them for a name.
   *
   * @throws RangeError as `redissonLock`; TypeError on a connection with a keyPrefix, behind which Java would not find
   *   the counter.
   */
  redissonFencedLock(name: string): Lock {
    this.#checkFitsRedisson(name);
    const { prefix } = this.#keys;
    if (prefix !== "")
      throw new TypeError(
        `Cannot create a lock: behind the keyPrefix ${quote(prefix)} Java would not find the token counter of ${quote(name)}; write the prefix into the name, on a connection without one`,
      );
    return this.lockOf(name, this.#kinds.redissonFenced);
  }

  /**
   * The lock that everybody knows, `SET key owner NX PX`: for servers without pub/sub, and to share a lock with redis-py,
   * bsm/redislock, redlock on one node, or redis-semaphore (`{ prefix: "mutex:" }`). Waiters try again after 1, 2, 4 …
   * 128 ms; nothing is subscribed. No hand-off, no order, no fencing tokens (`lease.token` is 0): prefer `lock()`.
   *
   * @param name the key, 1 to 512 bytes of UTF-8.
   * @throws TypeError or RangeError for a bad name or prefix.
   * @example
   * const lock = locks.spinLock("orders", { prefix: "mutex:" }); // redis-semaphore's new Mutex(redis, "orders")
   */
  spinLock(name: string, options?: SpinLockOptions): Lock {
    return this.lockOf(checkSpinOptions(options).prefix + checkName(name), this.#kinds.spin);
  }

  /**
   * Several locks as one: all or none, always taken in the same order, so that overlapping ones never deadlock.
   *
   * @param members 1 to 100 names of `lock`, or locks of this client, such as `locks.fairLock(name)`. A name that comes
   *   twice counts once.
   * @throws TypeError or RangeError for bad arguments, and for one name as two kinds of lock.
   * @example
   * await locks.multiLock(["account:1", "account:2"]).withLock(async (lease) => {
   *   await withdraw(1, { signal: lease.signal, fence: lease.token("account:1") });
   *   await deposit(2, { signal: lease.signal, fence: lease.token("account:2") });
   * });
   */
  multiLock(members: readonly (string | Lock)[]): MultiLock {
    return this.multiLockOf(members, this.#kinds.lock);
  }

  #checkFitsRedisson(name: string): void {
    if (this.#keys.fitsRedisson(checkName(name))) return;
    const { prefix } = this.#keys;
    const where = `in Cluster Redisson's keys of ${quote(name)} have different hash slots`;
    const cure = /[{}]/.test(name)
      ? "use a name without braces"
      : `the keyPrefix ${quote(prefix)} must have no braces, or a whole tag`;
    throw new RangeError(`Cannot create a lock: ${where}; ${cure}`);
  }
}

/**
 * Creates a lock client on at least three masters that know nothing of each other: Redlock. A lock is held by whom a
 * majority of them has granted it. An even number is allowed, and tolerates no more failures than one less.
 *
 * @throws TypeError or RangeError for bad arguments: fewer than three, one of them twice, a Cluster, a Sentinel group.
 * @example
 * const locks = createLockClient([redisA, redisB, redisC]);
 */
export function createLockClient(masters: readonly RedisLike[], options?: QuorumClientOptions): QuorumClient;
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
export function createLockClient(redis: RedisLike | ClusterLike, options?: LockClientOptions): LockClient;
export function createLockClient(
  redis: RedisLike | ClusterLike | readonly RedisLike[],
  options?: LockClientOptions | QuorumClientOptions,
): LockClient | QuorumClient {
  if (isList(redis)) {
    const settings = checkQuorumOptions(options);
    checkMasters(redis);
    return new QuorumClient([...redis], settings);
  }
  const settings = checkClientOptions(options);
  if (!isConnection(redis))
    throw new TypeError(`${CANNOT}: redis must be an ioredis connection, new Redis(…)`);
  const { keyPrefix = "" } = redis.options;
  if (isCluster(redis) && !hasOneSlotPerLock(keyPrefix)) {
    throw new TypeError(
      `${CANNOT}: behind the keyPrefix ${quote(keyPrefix)} the keys of one lock have different hash slots; use one without "{}"`,
    );
  }
  return new LockClient(redis, settings);
}

const CANNOT = "Cannot create a lock client";

const isList = (redis: unknown): redis is readonly RedisLike[] => Array.isArray(redis);

/** Independent masters, as Redlock needs them. That two connections lead to one server is only seen when they are used. */
function checkMasters(masters: readonly RedisLike[]): void {
  if (masters.length < QUORUM_MIN)
    throw new RangeError(
      `${CANNOT}: of several masters there must be at least ${QUORUM_MIN}, of which one may fail, received ${masters.length}; for one server hand over its connection alone`,
    );
  for (const [i, redis] of masters.entries()) {
    const which = `${CANNOT}: connection ${i + 1} of ${masters.length}`;
    if (!isConnection(redis)) throw new TypeError(`${which} must be an ioredis connection, new Redis(…)`);
    if (isCluster(redis))
      throw new TypeError(
        `${which} is a Cluster; a quorum needs single masters that know nothing of each other`,
      );
    if ("sentinels" in redis.options && redis.options.sentinels)
      throw new TypeError(`${which} follows Sentinel; a failover would forget votes: name the master itself`);
    const first = masters.indexOf(redis);
    if (first < i)
      throw new TypeError(`${which} is the same as connection ${first + 1}: it would vote twice`);
  }
}
