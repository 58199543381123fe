import type { Redis } from "ioredis";
import type { LockClient } from "../../src/index.ts";
import { Keys } from "../../src/keys.ts";

/** ms: a turn begins without a question only within so much of the sending of the last command that was answered "yours". */
export const STAY_FRESH = 100;
/** ms that a lock may live in Redis while nobody is inside of it. */
export const STAY_WINDOW = 3_000;
/** What a client that keeps its locks is made with. */
export const LINGERING = { linger: 1_000 } as const;

/** More names than a client tries that keeps one of 32 to see whether that pays, and turns until it knows. */
const TRIES = 2_000;

/** Takes a lock and gives it back until its client keeps it although nobody is inside. */
export async function keep(
  { redis, locks }: { redis: Redis; locks: LockClient },
  name: string,
): Promise<void> {
  const { lock } = new Keys("", redis.isCluster).of(name);
  for (let i = 0; i < TRIES; i++) {
    await (await locks.lock(name).lock({ wait: 10_000 })).unlock();
    // Behind a release, if there was one: commands of a connection keep their order.
    const value = await redis.get(lock);
    if (value?.[1] === "2" && value.includes(locks.id)) return;
  }
  throw new Error(`${name} was not kept in ${TRIES} turns`);
}
