import { describe, expect, it, onTestFinished } from "vitest";
import type { LockClient, LockError, PermitLease, Semaphore } from "../../src/index.ts";
import { createTestLocks } from "../../src/tools/testing/index.ts";
import { freshName } from "../support/fixture.ts";
import { SemaphoreServer, waiting } from "../support/semaphores.ts";

// How many permits there are: what the code says, and what was set.

const own = new SemaphoreServer();

describe("the number of permits", () => {
  it("in the code of two callers must agree: the second is refused", async () => {
    const [a] = (await own.open(1, 2)) as [Semaphore];
    await a.acquire();
    const { locks } = await own.parties.join({ url: own.url });
    const why: unknown[] = [];
    locks.on("giveup", (event) => why.push([event.why, event.units]));
    const five = locks.semaphore(a.name, { permits: 5 }).acquire(4);
    await expect(five).rejects.toMatchObject({
      name: "PermitsError",
      code: "PERMITS_DIFFER",
      lockName: a.name,
      stored: 2,
      given: 5,
      units: 4,
      message: expect.stringMatching(/has 2 permits, and this caller wants 4 of 5: give the same number/),
    });
    expect(why).toEqual([["refused", 4]]);
    // Also for one that the stored number would suffice for.
    await expect(locks.semaphore(a.name, { permits: 5 }).acquire()).rejects.toMatchObject({
      code: "PERMITS_DIFFER",
      stored: 2,
      given: 5,
      units: 1,
    });
    await expect(locks.semaphore(a.name).acquire(3)).rejects.toThrow(
      /has 2 permits, and this caller wants 3: /,
    );
    expect((await locks.semaphore(a.name).acquire()).units).toBe(1); // as many as are stored
  });

  it("must be known", async () => {
    const [a, b] = (await own.open(2)) as [Semaphore, Semaphore];
    await expect(a.tryAcquire()).rejects.toMatchObject({
      code: "PERMITS_UNKNOWN",
      stored: null,
      given: null,
    });
    expect(await a.inspect()).toMatchObject({
      permits: null,
      isSet: false,
      used: 0,
      holders: [],
      waiters: [],
    });
    await b.setPermits(1);
    expect((await a.acquire()).held).toBe(true);
  });

  it("that was set counts for all, up and down, while permits are in use", async () => {
    const name = freshName();
    const [a, b] = (await Promise.all([joined(), joined()])).map((locks) => {
      locks.on("error", () => {}); // of the number in the code, which is not the one that was set
      return locks.semaphore(name, { permits: 2, fair: true });
    }) as [Semaphore, Semaphore];
    const held = [await a.acquire(), await a.acquire()];
    const later = [b.acquire(), b.acquire()];
    await waiting(a, 2);
    await a.setPermits(4);
    held.push(...(await Promise.all(later)));
    expect(await b.inspect()).toMatchObject({ permits: 4, isSet: true, used: 4, waiters: [] });
    await b.setPermits(1);
    expect(await b.inspect()).toMatchObject({ permits: 1, used: 4 });
    const next = b.acquire();
    await waiting(a, 1);
    for (const lease of held.slice(0, 3)) await lease.release();
    expect((await b.inspect()).waiters).toHaveLength(1); // one is in use, which is all there is
    await held[3]?.release();
    await (await next).release();
    // It counts on where nobody holds any, whatever the code says.
    expect(await a.tryAcquire()).not.toBeNull();
    expect(await b.tryAcquire()).toBeNull();
  });

  it("that is lowered refuses only waiters that want more", async () => {
    const [a, b] = (await own.openFair(2, 3)) as [Semaphore, Semaphore];
    const blocker = await a.acquire(3);
    const [large, small, middle] = [3, 1, 2].map((units) => b.acquire(units)) as [
      Promise<PermitLease>,
      Promise<PermitLease>,
      Promise<PermitLease>,
    ];
    await waiting(a, 3);
    await a.setPermits(2);
    const told = expect(large).rejects.toMatchObject({ code: "PERMITS_DIFFER", stored: 2, units: 3 });
    await blocker.release();
    await told;
    const lease = await small;
    expect((await a.inspect()).waiters).toMatchObject([{ units: 2 }]);
    await lease.release();
    await (await middle).release();
  });
});

const CLIENTS: readonly (readonly [string, () => Promise<[LockClient, LockClient]>])[] = [
  ["on Redis", async () => [await joined(), await joined()]],
  [
    "in memory",
    async () => {
      const one = createTestLocks();
      const other = one.test.another();
      onTestFinished(async () => void (await Promise.all([one.close(), other.close()])));
      return [one, other];
    },
  ],
];
const joined = async (): Promise<LockClient> => (await own.parties.join({ url: own.url })).locks;

describe.each(CLIENTS)("a number that was set, %s", (_, clients) => {
  it.each([false, true])("is reported once where the code says another one (fair: %s)", async (fair) => {
    const [operator, locks] = await clients();
    const told: LockError[] = [];
    for (const client of [operator, locks]) client.on("error", (error) => told.push(error));
    const name = freshName();
    await operator.semaphore(name).setPermits(2);
    const same = locks.semaphore(name, { permits: 2, fair });
    const [silent, first, second] = [
      locks.semaphore(name, { fair }),
      ...[5, 9].map((permits) => locks.semaphore(name, { permits, fair })),
    ] as [Semaphore, Semaphore, Semaphore];
    for (const agrees of [same, silent]) await (await agrees.acquire()).release();
    expect(told).toEqual([]);
    // Side by side, as two versions of a program are while one replaces the other.
    for (let call = 0; call < 5; call++)
      for (const differs of [first, second]) await (await differs.acquire(2)).release();
    expect(told).toMatchObject([{ code: "SETTING_DIFFERS", lockName: name }]);
    expect(told[0]?.message).toMatch(/has 2 permits by setPermits\(\), and this code says 5:/);
    await operator.semaphore(name).setPermits(3);
    await (await first.acquire(3)).release();
    expect(told).toHaveLength(2);
    // The client that has set it knows.
    await (await operator.semaphore(name, { permits: 5, fair }).acquire(3)).release();
    expect(told).toHaveLength(2);
  });

  it("is reported to a caller that waits, before it has its permits", async () => {
    const [operator, locks] = await clients();
    const name = freshName();
    await operator.semaphore(name).setPermits(1);
    const blocker = await operator.semaphore(name).acquire();
    const told = new Promise((tell) => locks.on("error", tell));
    const next = locks.semaphore(name, { permits: 5 }).acquire();
    expect(await told).toMatchObject({ code: "SETTING_DIFFERS", lockName: name });
    await blocker.release();
    await (await next).release();
  });
});
