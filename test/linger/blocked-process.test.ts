import { afterAll, expect, it } from "vitest";
import { block } from "../support/block.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { until } from "../support/until.ts";

const parties = new Parties();
afterAll(parties.close);

const WINDOW = 300;

it("a process that was suspended for longer than a lock may linger acquires it again, without a loss or an error", async () => {
  const { locks } = await parties.join({ client: { grantWindow: WINDOW, linger: WINDOW / 2 } });
  const lock = locks.lock(freshName());
  const lost: unknown[] = [];
  locks.on("lost", (event) => lost.push(event));
  const keep = async (): Promise<number> => {
    const lease = await lock.lock();
    await lease.unlock();
    return locks.stats().kept === 1 ? lease.token : 0;
  };
  for (const stop of [WINDOW - 20, WINDOW - 15, WINDOW - 10, WINDOW - 5, WINDOW, WINDOW + 100, 2 * WINDOW]) {
    const token = await until(keep, { what: "a lock that is kept" });
    block(stop);
    // In the first statement: no timer has run, and nothing was read.
    const lease = await lock.tryLock();
    expect(lease?.held).toBe(true);
    expect(lease?.token).toBeGreaterThan(token);
    await lease?.unlock();
  }
  expect(lost).toEqual([]);
});
