import type {
  LockClient,
  LockClientOptions,
  NodeRedisLike,
  PermitLease,
  RedisLike,
  UnfencedLease,
} from "../../src/index.ts";
import { countNodeRedisCommands } from "../../tools/redis/count-commands.ts";
import { connect } from "./connect.ts";
import type { Ask, Contender, Release } from "./contender.ts";
import { PERMITS } from "./ids.ts";
import { type Library, loadLibrary } from "./library.ts";

export const openLock = openKind("lock");

/** The same on a client of node-redis. */
export const openNodeRedisLock = openKind("lock", {}, overNodeRedis);
/** An unlocked lock stays with its process for up to a second, where that pays. */
export const openLingeringLock = openKind("lock", { linger: 1_000 });
/** Client and call say what they are, as operators want it. */
export const openLabelledLock = open(
  (locks, name, { wait, lease }) =>
    locks.lock(name).tryLock({ wait, lease: lease ?? undefined, label: "nightly invoice" }),
  { label: "billing@2.3" },
);
export const openFairLock = openKind("fairLock");
/**
 * Without passes, which need no Redis: it shows what a broadcast costs, beside the same waiting
 * with a hand-off.
 */
export const openRedissonLock = open(
  (locks, name, { wait, lease }, { redissonLock }) =>
    redissonLock(locks, name).tryLock(wait, lease ?? undefined),
  { localHandoffs: 0 },
);
export const openReadWriteLock = open((locks, name, { wait, lease, isWriter }) => {
  const { read, write } = locks.readWriteLock(name);
  return (isWriter ? write : read).tryLock(wait, lease ?? undefined);
});
export const openSemaphore = open((locks, name, { wait, lease }) =>
  locks.semaphore(name, { permits: PERMITS }).tryAcquire(1, wait, lease ?? undefined),
);

function openKind(
  kind: "lock" | "fairLock",
  options?: LockClientOptions,
  over = overIoredis,
): Contender["open"] {
  return open(
    (locks, name, { wait, lease }) => locks[kind](name).tryLock(wait, lease ?? undefined),
    options,
    over,
  );
}

/** A connection, whichever library made it. */
interface Connection {
  readonly redis: RedisLike | NodeRedisLike;
  close(): void;
  readonly commands?: () => number;
}

async function overIoredis(url: string): Promise<Connection> {
  const redis = await connect(url);
  return { redis, close: () => redis.disconnect() };
}

async function overNodeRedis(url: string): Promise<Connection> {
  const commands = countNodeRedisCommands();
  // Only here: what is loaded besides a library would be counted as its first calls.
  const { createClient } = await import("redis");
  const redis = createClient({ url });
  redis.on("error", console.error);
  await redis.connect();
  return { redis, close: () => redis.destroy(), commands };
}

function open(
  acquire: (
    locks: LockClient,
    name: string,
    ask: Ask,
    library: Library,
  ) => Promise<UnfencedLease | PermitLease | null>,
  options?: LockClientOptions,
  over = overIoredis,
): Contender["open"] {
  return async (url, { library }) => {
    const [{ redis, close, ...counted }, loaded] = await Promise.all([over(url), loadLibrary(library)]);
    const locks = loaded.createLockClient(redis, options);
    return {
      acquire: (name, ask) => acquire(locks, name, ask, loaded).then(toRelease),
      async close() {
        await locks.close();
        close();
      },
      ...counted,
    };
  };
}

const toRelease = (lease: UnfencedLease | PermitLease | null): Release | null =>
  lease && (() => ("release" in lease ? lease.release() : lease.unlock()));
