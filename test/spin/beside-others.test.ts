import { createRequire } from "node:module";
import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { Mutex } from "redis-semaphore";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Lock, UnfencedLease } from "../../src/index.ts";
import { spinLock } from "../../src/spin.ts";
import { failure } from "../contract/observe.ts";
import { awake } from "../support/awake.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// Other libraries and spinLock at one lock, through their published packages.

/** redlock ships types, but its `exports` do not name them. This is what is used of them. */
interface Redlock {
  acquire(resources: string[], ms: number): Promise<{ release(): Promise<unknown> }>;
  on(event: "error", listener: () => void): unknown;
}
const require = createRequire(import.meta.url);
const { default: Redlock } = require("redlock") as {
  default: new (clients: Iterable<Redis>, settings: { retryCount: number; retryDelay: number }) => Redlock;
};

/** A lock of another library: gives up after so many ms with a rejection. */
interface Their {
  acquire(wait: number, lease: number): Promise<{ release(): Promise<unknown> }>;
}

const LIBRARIES: Record<string, { prefix: string; open(redis: Redis, name: string): Their }> = {
  redlock: {
    prefix: "",
    open: (redis, name) => ({
      acquire(wait, lease) {
        const redlock = new Redlock([redis], { retryCount: Math.floor(wait / 20), retryDelay: 20 });
        redlock.on("error", () => {}); // one for each try that finds the lock held
        return redlock.acquire([name], lease);
      },
    }),
  },
  "redis-semaphore": {
    prefix: "mutex:",
    open: (redis, name) => ({
      async acquire(wait, lease) {
        const options = { acquireTimeout: wait, lockTimeout: lease, refreshInterval: 0 };
        const mutex = new Mutex(redis as never, name, options);
        await mutex.acquire();
        return mutex;
      },
    }),
  },
};

const parties = new Parties();
let party: Party;
let theirRedis: Redis;
beforeAll(async () => {
  party = await parties.join();
  theirRedis = (await parties.join()).redis;
});
afterAll(parties.close);

describe.each(Object.entries(LIBRARIES))("beside %s", (_, { prefix, open }) => {
  function fresh(): { key: string; ours: Lock<UnfencedLease>; theirs: Their } {
    const name = freshName("beside");
    return {
      key: prefix + name,
      ours: spinLock(party.locks, name, { prefix }),
      theirs: open(theirRedis, name),
    };
  }

  it("waits while they hold it, and gets it after their release", async () => {
    const { ours, theirs } = fresh();
    const their = await theirs.acquire(1_000, 30_000);
    expect([await ours.tryLock(), await ours.isLocked()]).toEqual([null, true]);
    expect(await ours.tryLock(100)).toBe(null);
    const waiter = ours.lock();
    await their.release();
    const released = awake();
    const lease = await waiter;
    expect(awake() - released).toBeLessThan(2_000); // its TTL would have been 30 s
    await lease.unlock();
  });

  it("keeps them out while it holds, and admits them after its release", async () => {
    const { ours, theirs } = fresh();
    const lease = await ours.lock();
    await expect(theirs.acquire(200, 30_000)).rejects.toThrow();
    expect(lease.held).toBe(true);
    const waiting = theirs.acquire(15_000, 30_000);
    await lease.unlock();
    const their = await waiting;
    expect(await ours.tryLock()).toBe(null);
    await their.release();
  });

  it("does not release theirs", async () => {
    const { key, ours, theirs } = fresh();
    const lease = await ours.lock();
    await theirRedis.del(key);
    const their = await theirs.acquire(1_000, 30_000);
    const value = await theirRedis.get(key);
    expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "taken" });
    expect(await theirRedis.get(key)).toBe(value);
    await their.release();
  });

  it("is not released by them", async () => {
    const { key, ours, theirs } = fresh();
    const their = await theirs.acquire(1_000, 30_000);
    await theirRedis.del(key);
    const lease = await ours.lock();
    await their.release().catch(() => {}); // redlock says so, redis-semaphore does not
    expect([await theirRedis.exists(key), await ours.tryLock()]).toEqual([1, null]);
    await lease.unlock(); // rejects if it had been released
  });

  it("acquires the lock of a crashed one when its lease is over", async () => {
    const { ours, theirs } = fresh();
    await theirs.acquire(1_000, 300);
    const asked = awake();
    await (await ours.lock({ wait: 10_000 })).unlock();
    expect(awake() - asked).toBeLessThan(2_000);
  });

  it("excludes them under load, and they exclude it; neither starves", async () => {
    const { ours, theirs } = fresh();
    let inside = 0;
    let most = 0;
    const visits = { ours: 0, theirs: 0 };
    const visit = async (who: keyof typeof visits) => {
      most = Math.max(most, ++inside);
      await delay(5);
      inside--;
      visits[who]++;
    };
    const isEnough = () => visits.theirs >= 10;
    // Eight callers here want it all the time. Without the rest after each turn they took it some
    // 1 900 times meanwhile.
    const all = Array.from({ length: 8 }, async () => {
      while (!isEnough() && visits.ours < 1_500) await ours.withLock(() => visit("ours"));
    });
    const other = (async () => {
      for (let i = 0; i < 10; i++) {
        const their = await theirs.acquire(60_000, 30_000);
        await visit("theirs");
        await their.release();
      }
    })();
    await Promise.all([...all, other]);
    await until(() => inside === 0);
    expect([most, visits.theirs]).toEqual([1, 10]);
    expect(visits.ours).toBeLessThan(1_500);
  });
});
