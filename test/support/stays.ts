import { setImmediate as nextTurn } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { LockClient } from "../../src/index.ts";
import { Keys } from "../../src/redis/keys.ts";

/**
 * ms: a turn begins without a round trip only this long after the sending of the last command that
 * was answered "yours".
 */
export const STAY_FRESH = 100;
/** ms that a lock may live in Redis with no caller inside. */
export const STAY_WINDOW = 3_000;
/** The options of a client that caches its locks. */
export const LINGERING = { linger: 1_000 } as const;

/** More names than a client tries that keeps one of 32 as a test, and turns until it knows. */
const TRIES = 2_000;
/**
 * A lock that was taken again this often is also kept the next time, even if Redis was asked each
 * time.
 */
export const PAYS = 4;

/**
 * Takes a lock and gives it back until its client keeps it with no caller inside, and then this
 * many more times.
 */
export async function keep(
  { redis, locks }: { redis: Redis; locks: LockClient },
  name: string,
  often = 0,
): Promise<void> {
  const { lock } = new Keys("", redis.isCluster).of(name);
  let again = -1;
  for (let i = 0; i < TRIES; i++) {
    await (await locks.lock(name).lock({ wait: 10_000 })).unlock();
    // A lock that ends with this turn of the event loop is not kept.
    await nextTurn();
    // After a release, if there was one: commands of a connection keep their order.
    const value = await redis.get(lock);
    const isKept = value?.[1] === "2" && value.includes(locks.id);
    again = isKept ? again + 1 : -1;
    if (again === often) return;
  }
  throw new Error(`${name} was not kept in ${TRIES} turns`);
}
