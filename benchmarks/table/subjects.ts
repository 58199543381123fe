// The libraries of the table, called as their documentation shows it first, with their defaults.
import { Mutex } from "redis-semaphore";
import Redlock from "redlock";
import { createLockClient } from "../../src/index.ts";
import { connect } from "../contenders/connect.ts";

/** A library, in a process with one connection. */
export interface Subject {
  /** Takes the lock with the library's plain call; resolves with its release. */
  lock(name: string): Promise<() => Promise<unknown>>;
  /** Holds a lock with a lease of so many ms that the library renews. `lost` is called when it tells its caller of the loss. */
  hold(name: string, lease: number, lost: () => void): Promise<unknown>;
}

/** It has no default. */
const REDLOCK_LEASE = 30_000;

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
      hold: (name, lease, lost) =>
        new Promise<void>((resolve, reject) => {
          // What happens after the loss is not of interest here: the body never ends.
          const body = async (signal: AbortSignal) => {
            signal.addEventListener("abort", lost);
            resolve();
            await new Promise(() => {});
          };
          redlock.using([name], lease, body).catch(reject);
        }),
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
