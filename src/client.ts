import { BaseClient } from "./base-client.ts";
import { hasOneSlotPerLock } from "./cluster/slots.ts";
import { QUORUM_MIN } from "./defaults.ts";
import { quote } from "./errors.ts";
import type { Keys } from "./keys.ts";
import { handoffLock } from "./locks/handoff.ts";
import type { Lock } from "./locks/lock.ts";
import { redissonLock } from "./locks/redisson.ts";
import {
  checkClientOptions,
  checkName,
  checkQuorumOptions,
  type LockClientOptions,
  type QuorumClientOptions,
  type Settings,
} from "./options.ts";
import { type ClusterLike, duplicate, isCluster, type RedisLike } from "./redis-like.ts";
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
  readonly #kinds: { readonly lock: LockKind; readonly fair: LockKind; readonly redisson: LockKind };

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
      redisson: redissonLock(commands, replication),
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
    if (!this.#keys.fitsRedisson(checkName(name)))
      throw new RangeError(
        `Cannot create a lock: in Cluster Redisson's keys of ${quote(name)} have different hash slots; use a name without braces`,
      );
    return this.lockOf(name, this.#kinds.redisson);
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

const isConnection = (redis: RedisLike | ClusterLike): boolean =>
  typeof redis === "object" &&
  redis !== null &&
  typeof redis.evalsha === "function" &&
  typeof redis.duplicate === "function";

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
