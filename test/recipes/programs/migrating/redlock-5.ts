import { createLockClient, LockLostError } from "holdfast";
import Redlock from "redlock5";
import { prove } from "../support.ts";
import { type Open, run, sameOutcome } from "./shop.ts";

/** How long the first sale takes, in ms: longer than a lock lasts that is not renewed. */
const slow = 6_000;

const before: Open = (redis, sellOne) => {
  // #region before
  const redlock = new Redlock([redis], { retryCount: 100, automaticExtensionThreshold: 2_000 });
  redlock.on("error", () => {}); // emitted for a busy lock, too

  async function sell(product: string): Promise<void> {
    await redlock.using([`lock:${product}`], 5_000, (signal) => sellOne(product, signal));
  }
  // #endregion
  return { sell };
};

const after: Open = (redis, sellOne) => {
  // #region after
  const locks = createLockClient(redis); // one for each process

  async function sell(product: string): Promise<void> {
    // without `watchdog` the lease ends after 5 s
    const options = { wait: 20_000, lease: 5_000, watchdog: true };
    await locks.lock(`lock:${product}`).withLock(options, (lease) => sellOne(product, lease.signal));
  }
  // #endregion
  return { sell, close: () => locks.close() };
};

const withoutWatchdog: Open = (redis, sellOne) => {
  const locks = createLockClient(redis);
  return {
    sell: (product) =>
      locks
        .lock(`lock:${product}`)
        .withLock({ wait: 20_000, lease: 5_000 }, ({ signal }) => sellOne(product, signal)),
    close: () => locks.close(),
  };
};

await sameOutcome(before, after);

const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(String, (error: unknown) => error);
const [renewed, alsoRenewed, trapped, late] = await Promise.all([
  run(before, { slow, customers: 1 }),
  run(after, { slow, customers: 2 }),
  failure(run(withoutWatchdog, { slow, customers: 1 })),
  failure(run(before, { slow, customers: 2 })),
]);
prove(renewed.join() === "4 left", `using() renews: ${renewed}`);
prove(alsoRenewed.join() === "4 left,3 left", `and so does the watchdog: ${alsoRenewed}`);
prove(
  trapped instanceof LockLostError && trapped.reason === "expired",
  `a lease without the watchdog ends before a body that takes longer: ${trapped}`,
);
prove(
  late instanceof Error && late.name === "AbortError",
  `redlock aborts the signal of a caller that has waited for longer than its lock lasts: ${late}`,
);
