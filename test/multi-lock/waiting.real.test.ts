// On a real Redis; in virtual time: test/world/directed/multi-lock.test.ts,
// test/world/directed/multi-lock-waiting.test.ts.

import { beforeAll, describe, expect, it } from "vitest";
import { LockTimeoutError } from "../../src/index.ts";
import { failure, lossOf } from "../contract/observe.ts";
import type { Party } from "../support/fixture.ts";
import { MultiLocks, three } from "../support/multi-locks.ts";
import { until } from "../support/until.ts";
import { warm } from "../support/warm.ts";

// Several locks as one, while others hold some of them.

const several = new MultiLocks();
let mine: Party;
let theirs: Party;
beforeAll(() => {
  ({ mine, theirs } = several);
});

describe.concurrent("waiting", () => {
  it("holds the members before the one it waits for, and none after it; then it has all", async () => {
    const names = three();
    const { locks } = await several.join();
    const held = await theirs.locks.lock(names[1]).lock();
    const waiting = locks.multiLock(names).lock();
    await several.look(names[1]).queued(1);
    await until(async () => (await several.holders(names)).join() === `${locks.id},${theirs.locks.id},`);
    const third = await theirs.locks.lock(names[2]).tryLock();
    expect(third).not.toBeNull();
    await held.unlock();
    await several.look(names[2]).queued(1);
    await third?.unlock();
    const lease = await waiting;
    expect(await several.holders(names)).toEqual([locks.id, locks.id, locks.id]);
    await lease.unlock();
    await several.gone(names);
  });

  it("has one time for all of them", async () => {
    const names = three();
    const [a, b] = names;
    const [first, second, third] = await Promise.all(names.map((name) => theirs.locks.lock(name).lock()));
    const asked = performance.now();
    let waited = 0;
    const error = failure(mine.locks.multiLock(names).lock({ wait: 4_000 })).finally(() => {
      waited = performance.now() - asked;
    });
    await until(() => performance.now() - asked > 3_500);
    await first?.unlock();
    // If the time began anew for the second, it would be waited for until 7 500 ms, then had, and
    // the third named.
    await until(() => waited > 0 || performance.now() - asked > 7_000);
    await second?.unlock();
    expect(await error).toBeInstanceOf(LockTimeoutError);
    expect(waited).toBeGreaterThanOrEqual(3_990);
    expect(await error).toMatchObject({
      lockName: b,
      wait: 4_000,
      message: expect.stringContaining("one of 3 that this call wants together"),
    });
    await several.gone([a, b]); // given back
    await third?.unlock();
    await several.gone(names);
  });

  it("ends with the signal, at each step, and gives back what was acquired", async () => {
    const names = three();
    for (const [at, busy] of names.entries()) {
      const held = await theirs.locks.lock(busy).lock();
      const controller = new AbortController();
      const call = failure(mine.locks.multiLock(names).lock({ signal: controller.signal }));
      await several.look(busy).queued(1);
      expect((await several.holders(names)).slice(0, at)).toEqual(Array(at).fill(mine.locks.id));
      controller.abort(`step ${at}`);
      expect(await call).toBe(`step ${at}`);
      await several.gone(names.filter((name) => name !== busy));
      await several.look(busy).queued(0);
      await held.unlock();
    }
    const controller = new AbortController();
    const early = failure(mine.locks.multiLock(names).lock({ signal: controller.signal }));
    controller.abort("before any answer");
    expect(await early).toBe("before any answer");
    expect(await failure(mine.locks.multiLock(names).lock({ signal: controller.signal }))).toBe(
      "before any answer",
    );
    await several.gone(names);
  });

  it("gives the whole of an explicit lease, counted from when all are held", async () => {
    const names = three();
    const held = await theirs.locks.lock(names[2]).lock();
    const waiting = mine.locks.multiLock(names).lock({ lease: 12_000 });
    await several.look(names[2]).queued(1);
    await until(async () => (await several.look(names[0]).left()) < 9_000, { what: "the first to wait" });
    await held.unlock();
    const lease = await waiting;
    expect(lease.remaining).toBeGreaterThan(9_500);
    for (const name of names) expect(await several.look(name).left()).toBeGreaterThan(9_500);
    expect(await lossOf(lease.signal)).toBe("expired"); // no watchdog any more
    await failure(lease.unlock());
    await several.gone(names);
  });

  it("keeps its members while it waits for longer than the lease", async () => {
    const names = three();
    const { locks } = await several.join({ leaseTime: 2_000 });
    const held = await theirs.locks.lock(names[2]).lock();
    const waiting = locks.multiLock(names).lock({ lease: 2_000 });
    await several.look(names[2]).queued(1);
    const { id } = locks;
    const start = performance.now();
    // The least that members live meanwhile is 3 s.
    await until(
      async () => {
        expect((await several.holders(names)).slice(0, 2)).toEqual([id, id]);
        return performance.now() - start > 3_500;
      },
      { what: "more than their lease" },
    );
    await held.unlock();
    const lease = await waiting;
    expect(lease.remaining).toBeLessThanOrEqual(2_000);
    await lease.unlock();
    await several.gone(names);
  });

  it.each(["told", "not told"])("begins again if one was lost meanwhile (%s)", async (how) => {
    const names = three();
    const held = await theirs.locks.lock(names[2]).lock();
    const party = await several.join();
    const { locks } = party;
    if (how === "told") await warm(theirs, party); // messages are heard from the first wait on
    const lost: string[] = [];
    locks.on("lost", ({ name }) => lost.push(name));
    const waiting = locks.multiLock(names).lock();
    await several.look(names[2]).queued(1);
    const start = performance.now();
    if (how === "told") expect(await theirs.locks.lock(names[0]).forceUnlock()).toBe(true);
    else await theirs.redis.del(several.look(names[0]).keys.lock);
    if (how === "told") await until(() => lost.length > 0, { what: "the loss" });
    // some round trips
    else await until(() => performance.now() - start > 200, { what: "the time of a message" });
    expect(lost.length).toBe(how === "told" ? 1 : 0);
    await held.unlock();
    const lease = await waiting;
    expect(lease.held).toBe(true);
    expect([await several.holders(names), lost]).toEqual([[locks.id, locks.id, locks.id], [names[0]]]);
    await lease.unlock();
    await several.gone(names);
  });
});
