import type { Redis } from "ioredis";
import { type LockOptions, Mutex, Semaphore } from "redis-semaphore";
import { connect } from "./connect.ts";
import type { Contender } from "./contender.ts";
import { PERMITS } from "./ids.ts";

/** Its Mutex: asks every 10 ms, holds for 10 s, refreshed every 8 s. */
export const openRedisSemaphore = open((redis, name, options) => new Mutex(redis, name, options));
/** Its Semaphore: the same with a sorted set of holders, by the clocks of the clients. */
export const openRedisSemaphorePermits = open(
  (redis, name, options) => new Semaphore(redis, name, PERMITS, options),
);

function open(make: (redis: Redis, name: string, options: LockOptions) => Mutex): Contender["open"] {
  return async (url) => {
    const redis = await connect(url);
    return {
      async acquire(name, { wait, lease }) {
        let loss: Error | null = null;
        const mutex = make(redis, name, {
          // With 0 it does not try even once.
          acquireTimeout: Math.max(wait, 1),
          // A refreshed lock would outlive its lease.
          ...(lease !== null && { lockTimeout: lease, refreshInterval: 0 }),
          // By default it throws in a timer, which ends the process.
          onLockLost: (error) => {
            loss = error;
          },
        });
        if (!(await mutex.tryAcquire())) return null;
        return async () => {
          await mutex.release();
          if (loss) throw loss;
        };
      },
      async close() {
        redis.disconnect();
      },
    };
  };
}
