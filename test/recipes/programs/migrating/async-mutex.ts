import { Mutex } from "async-mutex";
import { createLockClient } from "holdfast";
import { prove } from "../support.ts";
import { LINES } from "./lines.ts";
import { type Open, run, sameOutcome } from "./shop.ts";

const before: Open = (_, sellOne) => {
  // #region before
  const mutexes = new Map<string, Mutex>();

  async function sell(product: string): Promise<void> {
    const mutex = mutexes.get(product) ?? new Mutex();
    mutexes.set(product, mutex);
    await mutex.runExclusive(() => sellOne(product));
  }
  // #endregion
  return { sell };
};

const after: Open = (redis, sellOne) => {
  // #region after
  const locks = createLockClient(redis); // one for each process

  async function sell(product: string): Promise<void> {
    await locks.lock(product).withLock((lease) => sellOne(product, lease.signal));
  }
  // #endregion
  return { sell, close: () => locks.close() };
};

await sameOutcome(before, after, { workersBefore: 1 }); // and two after
prove((await run(before)).join() !== LINES.join(), "two workers with a mutex each sell too much");
