import { createLockClient } from "holdfast";
import { Mutex } from "redis-semaphore";
import { type Open, sameOutcome } from "./shop.ts";

const before: Open = (redis, sellOne) => {
  // #region before
  async function sell(product: string): Promise<void> {
    const times = { acquireTimeout: 20_000, lockTimeout: 5_000, refreshInterval: 1_000 };
    const mutex = new Mutex(redis, product, times);
    await mutex.acquire();
    try {
      await sellOne(product);
    } finally {
      await mutex.release();
    }
  }
  // #endregion
  return { sell };
};

const after: Open = (redis, sellOne) => {
  // #region after
  const locks = createLockClient(redis, { leaseTime: 5_000 }); // one for each process

  async function sell(product: string): Promise<void> {
    await using lease = await locks.lock(product).lock({ wait: 20_000 }); // renewed, as it has no `lease`
    await sellOne(product, lease.signal);
  }
  // #endregion
  return { sell, close: () => locks.close() };
};

await sameOutcome(before, after, { slow: 6_000 });
