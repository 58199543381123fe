// The lock of a hundred articles: one command takes it, and it is retried after a pause while
// another owner has it.
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { script } from "./script.ts";

/** How a lock is stored in Redis, and how long to wait before the next try, in ms. */
export interface SpinLock {
  /** False: another owner has it. */
  take(redis: Redis, name: string, owner: string, lease: number): Promise<boolean>;
  drop(redis: Redis, name: string, owner: string): Promise<unknown>;
  pause(attempt: number): number;
}

/** A string with its owner; the pause is always the same. */
export const plain = (pause: number): SpinLock => ({
  take: async (redis, name, owner, lease) => (await redis.set(name, owner, "PX", lease, "NX")) === "OK",
  drop: compareAndDelete,
  pause: () => pause,
});

const compareAndDelete = script(
  'if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) else return 0 end',
);

const enter = script(`
if redis.call("EXISTS", KEYS[1]) == 0 or redis.call("HEXISTS", KEYS[1], ARGV[1]) == 1 then
  redis.call("HINCRBY", KEYS[1], ARGV[1], 1)
  redis.call("PEXPIRE", KEYS[1], ARGV[2])
  return nil
end
return redis.call("PTTL", KEYS[1])`);

const leave = script(`
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then return nil end
if redis.call("HINCRBY", KEYS[1], ARGV[1], -1) > 0 then return 0 end
return redis.call("DEL", KEYS[1])`);

/**
 * A hash of the owner and its number of entries: Redisson's layout without its channel. The pause
 * is about 1, 2, 4 … 128 ms, times a random factor from 0.5 to 1.5, because with equal pauses all
 * callers would retry at the same moment.
 */
export const reentrant: SpinLock = {
  take: async (redis, name, owner, lease) => (await enter(redis, name, owner, lease)) === null,
  drop: leave,
  pause: (attempt) => Math.min(2 ** attempt, 128) * (0.5 + Math.random()),
};

/**
 * Spins for up to `wait` ms. An owner is one acquisition: callers of one process exclude each
 * other. Nothing renews the lease.
 *
 * @returns the release; null if the lock was not free in that time
 */
export async function spin(
  lock: SpinLock,
  redis: Redis,
  name: string,
  { wait, lease }: { wait: number; lease: number },
): Promise<(() => Promise<unknown>) | null> {
  const owner = randomUUID();
  const giveUpAt = performance.now() + wait;
  for (let attempt = 0; ; attempt += 1) {
    if (await lock.take(redis, name, owner, lease)) return () => lock.drop(redis, name, owner);
    const left = giveUpAt - performance.now();
    if (left <= 0) return null;
    await delay(Math.min(lock.pause(attempt), left));
  }
}
