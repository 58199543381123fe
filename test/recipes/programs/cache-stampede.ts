import { createLockClient, type LockClient } from "holdfast";
import type { Redis } from "ioredis";
import { connect, figure, ms, prove, sleep } from "./support.ts";

let loads = 0;

async function load(_: string, signal: AbortSignal): Promise<string> {
  loads++;
  await sleep(200, undefined, { signal });
  return "a report that takes long";
}

function cacheOf(redis: Redis, locks: LockClient): (key: string) => Promise<string> {
  // #region cached
  const filling = new Map<string, Promise<string>>(); // of this process: one call is enough for each key

  async function cached(key: string): Promise<string> {
    const hit = await redis.get(key);
    if (hit !== null) return hit;
    const begun = filling.get(key) ?? fill(key).finally(() => filling.delete(key));
    filling.set(key, begun);
    return begun;
  }

  function fill(key: string): Promise<string> {
    return locks.lock(`fill:${key}`).withLock(async (lease) => {
      const filled = await redis.get(key); // by the process that held the lock before this one
      if (filled !== null) return filled;
      const value = await load(key, lease.signal);
      await redis.set(key, value, "PX", 60_000);
      return value;
    });
  }
  // #endregion
  return cached;
}

const processes = Array.from({ length: 4 }, () => {
  const redis = connect();
  const locks = createLockClient(redis);
  return { redis, locks, cached: cacheOf(redis, locks) };
});
const key = `report:${process.pid}`;

const began = performance.now();
const values = await Promise.all(
  processes.flatMap(({ cached }) => Array.from({ length: 50 }, () => cached(key))),
);
const took = performance.now() - began;
prove(loads === 1, "200 callers on 4 connections load once");
prove(new Set(values).size === 1, "all of them get the value");
figure("200 callers, one load of 200 ms", ms(took));

for (const { redis, locks } of processes) {
  await locks.close();
  await redis.del(key);
  await redis.quit();
}
