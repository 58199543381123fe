import { createLockClient } from "holdfast";
import { createLock, IoredisAdapter } from "redlock-universal";
import { type Open, sameOutcome } from "./shop.ts";

const before: Open = (redis, sellOne) => {
  // #region before
  const adapter = new IoredisAdapter(redis);

  async function sell(product: string): Promise<void> {
    const key = `lock:${product}`;
    const lock = createLock({ adapter, key, ttl: 10_000, retryAttempts: 200, retryDelay: 100 });
    await lock.using((signal) => sellOne(product, signal));
  }
  // #endregion
  return { sell };
};

const after: Open = (redis, sellOne) => {
  // #region after
  const locks = createLockClient(redis, { leaseTime: 10_000 }); // one for each process

  async function sell(product: string): Promise<void> {
    await locks.lock(`lock:${product}`).withLock({ wait: 20_000 }, (lease) => sellOne(product, lease.signal));
  }
  // #endregion
  return { sell, close: () => locks.close() };
};

await sameOutcome(before, after);
