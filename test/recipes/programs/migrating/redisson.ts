import { createLockClient } from "holdfast";
import { prove } from "../support.ts";
import { LINES } from "./lines.ts";
import { type Open, run } from "./shop.ts";

// The program before is in Java: test/interop/migrating.test.ts has it print the same lines.

const after: Open = (redis, sellOne) => {
  // #region after
  const locks = createLockClient(redis); // one for each process

  async function sell(product: string): Promise<void> {
    await using lease = await locks.lock(product).tryLock(20_000, 10_000); // wait, lease
    if (!lease) throw new Error("busy for 20 s");
    await sellOne(product, lease.signal);
  }
  // #endregion
  return { sell, close: () => locks.close() };
};

const lines = await run(after);
prove(lines.join() === LINES.join(), `after: ${lines}`);
