// The libraries of the table, called as their documentation shows it first, with their defaults.
import { Mutex } from "redis-semaphore";
import Redlock from "redlock";
import { createLock, IoredisAdapter } from "redlock-universal";
import Redlock4 from "redlock4";
import { createLockClient } from "../../src/index.ts";
import { connect } from "../contenders/connect.ts";

/** A library, in a process with one connection. */
export interface Subject {
  /** Takes the lock with the library's plain call; resolves with its release. */
  lock(name: string): Promise<() => Promise<unknown>>;
  /**
   * Holds a lock with a lease of so many ms that the library renews. `lost` is called when it tells
   * its caller of the loss.
   */
  hold(name: string, lease: number, lost: () => void): Promise<unknown>;
}

/** It has no default. */
const REDLOCK_LEASE = 30_000;

/**
 * Resolves when the body of `using` runs. It never ends: what happens after the loss is not of
 * interest here.
 */
function inside(
  using: (body: (signal?: AbortSignal) => Promise<void>) => Promise<unknown>,
  lost: () => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    using(async (signal) => {
      signal?.addEventListener("abort", lost);
      resolve();
      await new Promise(() => {});
    }).catch(reject);
  });
}

export const subjects: Readonly<Record<string, (url: string) => Promise<Subject>>> = {
  async lock(url) {
    const redis = await connect(url);
    const locks = createLockClient(redis);
    return {
      async lock(name) {
        const lease = await locks.lock(name).lock();
        return () => lease.unlock();
      },
      async hold(name, leaseTime, lost) {
        const lease = await createLockClient(redis, { leaseTime }).lock(name).lock();
        lease.signal.addEventListener("abort", lost);
      },
    };
  },

  async redlock(url) {
    const redlock = new Redlock([await connect(url)]);
    return {
      async lock(name) {
        const lock = await redlock.acquire([name], REDLOCK_LEASE);
        return () => lock.release();
      },
      hold: (name, lease, lost) => inside((body) => redlock.using([name], lease, body), lost),
    };
  },

  async redlock4(url) {
    const redlock = new Redlock4([await connect(url)]);
    return {
      async lock(name) {
        const lock = await redlock.lock(name, REDLOCK_LEASE);
        return () => lock.unlock();
      },
      hold: () => Promise.reject(new Error("It renews nothing by itself")),
    };
  },

  async "redlock-universal"(url) {
    const adapter = new IoredisAdapter(await connect(url));
    return {
      async lock(key) {
        const lock = createLock({ adapter, key });
        const handle = await lock.acquire();
        return () => lock.release(handle);
      },
      hold: (key, ttl, lost) => inside((body) => createLock({ adapter, key, ttl }).using(body), lost),
    };
  },

  async "redis-semaphore"(url) {
    const redis = await connect(url);
    return {
      async lock(name) {
        const mutex = new Mutex(redis, name);
        await mutex.acquire();
        return () => mutex.release();
      },
      hold: (name, lockTimeout, onLockLost) => new Mutex(redis, name, { lockTimeout, onLockLost }).acquire(),
    };
  },
};
