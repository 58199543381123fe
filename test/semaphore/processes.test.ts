import { describe, expect, it } from "vitest";
import { Dice } from "../chaos/dice.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { present } from "../support/present.ts";
import { until } from "../support/until.ts";

// Many callers of many clients.

const own = new OwnServer();
const SEED = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

describe("over all processes", () => {
  it(`never are more permits in use than exist, while their number changes (TEST_SEED=${SEED})`, async () => {
    const dice = new Dice(SEED);
    const name = freshName();
    const parties = await Promise.all([1, 2, 3].map(() => own.parties.join({ url: own.url })));
    // The number in the code is not always the one that was set.
    for (const { locks } of parties) locks.on("error", () => {});
    const MOST = 6;
    let used = 0;
    let most = 0;
    let served = 0;
    await parties[0]?.locks.semaphore(name).setPermits(4);
    const caller = async (slots: ReturnType<(typeof parties)[0]["locks"]["semaphore"]>): Promise<void> => {
      for (let i = 0; i < 12; i++) {
        const units = dice.int(1, 3);
        const impatient = new AbortController();
        if (dice.chance(0.1)) setTimeout(() => impatient.abort("enough"), dice.int(0, 5));
        const options = { wait: dice.chance(0.2) ? 0 : 30_000, signal: impatient.signal };
        const lease = await slots.tryAcquire(units, options).catch(() => null);
        if (!lease) continue;
        used += units;
        served++;
        most = Math.max(most, used);
        await new Promise((done) => setTimeout(done, dice.int(0, 2)));
        expect(lease.held).toBe(true);
        used -= units;
        await lease.release();
      }
    };
    const callers = parties.flatMap(({ locks }) =>
      Array.from({ length: 6 }, () => caller(locks.semaphore(name, { permits: 4 }))),
    );
    // Fewer than are in use take none away, so the largest number bounds what is in use. It is the last
    // one, which most of the callers have.
    for (const permits of [5, 3, MOST]) await parties[1]?.locks.semaphore(name).setPermits(permits);
    await Promise.all(callers);
    expect(most).toBeLessThanOrEqual(MOST);
    expect(served).toBeGreaterThan(100);
    // A call that gave up was answered before what it had got was given back.
    const slots = present(parties[2]).locks.semaphore(name);
    await until(async () => {
      const { used, waiters } = await slots.inspect();
      return used === 0 && waiters.length === 0;
    });
  });
});
