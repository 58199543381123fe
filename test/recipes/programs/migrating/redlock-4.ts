import { createLockClient } from "holdfast";
import Redlock from "redlock4";
import { type Open, sameOutcome } from "./shop.ts";

const before: Open = (client, sellOne) => {
  const redis = client as never; // the types of redlock 4 know ioredis 4 only
  // #region before
  const redlock = new Redlock([redis], { retryCount: 100, retryDelay: 200 });

  async function sell(product: string): Promise<void> {
    const lock = await redlock.lock(`lock:${product}`, 10_000);
    try {
      await sellOne(product);
    } finally {
      await lock.unlock();
    }
  }
  // #endregion
  return { sell };
};

const after: Open = (redis, sellOne) => {
  // #region after
  const locks = createLockClient(redis); // one for each process

  async function sell(product: string): Promise<void> {
    await using lease = await locks.lock(`lock:${product}`).tryLock(20_000); // how long it waits
    if (!lease) throw new Error("busy for 20 s");
    await sellOne(product, lease.signal);
  }
  // #endregion
  return { sell, close: () => locks.close() };
};

await sameOutcome(before, after);
