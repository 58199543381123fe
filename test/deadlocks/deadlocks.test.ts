import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { DeadlockError, LockClientOptions } from "../../src/index.ts";
import { chain, circle, codes, leftOf, listen } from "../support/circles.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// Callers that wait for each other in a circle, in scopes that hold something. What takes 5 s takes
// 200 ms here.
vi.mock("../../src/defaults.ts", async (all) => ({
  ...((await all()) as object),
  DEADLOCK_AFTER: 200,
  DEADLOCK_AGAIN: 100,
}));

const parties = new Parties();
let warnings: string[] = [];
const warned = (warning: Error & { code?: string }): void => void warnings.push(`${warning.code}`);

beforeEach(() => {
  warnings = [];
  process.on("warning", warned);
});
afterEach(async () => {
  await parties.close();
  process.off("warning", warned);
});

const join = (deadlocks: LockClientOptions["deadlocks"] = "reject"): Promise<Party> =>
  parties.join({ client: { deadlocks } });

it.each([
  ["two clients", 2],
  ["three clients", 3],
])("%s in a deadlock: one caller is rejected with the cycle, and the others go on", async (_, many) => {
  const all = await Promise.all(Array.from({ length: many }, () => join()));
  const told = listen(...all.map(({ locks }) => locks));
  const begun = performance.now();
  const { names, outcomes } = circle(all.map(({ locks }) => locks));
  const ended = await Promise.all(outcomes);
  expect(codes(ended)).toEqual(["DEADLOCK", ...Array.from({ length: many - 1 }, () => "both")]);
  const error = ended.find((one) => one instanceof Error) as DeadlockError;
  // First the one that it wants, then the one that this one's holder wants, last the one that it holds.
  const at = names.indexOf(error.lockName ?? "");
  const order = [...names.slice(at), ...names.slice(0, at)];
  expect(error.cycle).toMatchObject(
    order.map((name) => ({
      name,
      kind: "lock",
      holder: { pid: process.pid, id: expect.stringContaining(all[names.indexOf(name)]?.locks.id ?? "") },
    })),
  );
  expect(error.stack).toContain("deadlocks.test.ts");
  expect(told).toEqual([
    { name: error.lockName, rejected: true, cycle: error.cycle.map(({ name }) => name) },
  ]);
  expect(performance.now() - begun).toBeGreaterThan(200);
  await until(async () => (await leftOf(all[0], names)) === 0);
  expect(warnings).toEqual([]);
});

it("a deadlock between callers of one client is found, and one of them is rejected", async () => {
  const { locks } = await join();
  const { outcomes } = circle([locks, locks]);
  expect(codes(await Promise.all(outcomes))).toEqual(["DEADLOCK", "both"]);
});

it("a deadlock of readers, a writer and several locks is found", async () => {
  const [one, other] = [await join(), await join()];
  const [shared, plain] = [freshName(), freshName()];
  const held = until(
    async () =>
      (await one.locks.lock(plain).isLocked()) && (await one.locks.readWriteLock(shared).read.isLocked()),
  );
  const ended = await Promise.all([
    one.locks
      .readWriteLock(shared)
      .read.withLock(async () => {
        await held;
        return one.locks.multiLock([plain, freshName()]).withLock(() => "both");
      })
      .catch((error: Error) => error),
    other.locks
      .lock(plain)
      .withLock(async () => {
        await held;
        return other.locks.readWriteLock(shared).write.withLock(() => "both");
      })
      .catch((error: Error) => error),
  ]);
  expect(codes(ended)).toEqual(["DEADLOCK", "both"]);
});

it("the option warn gives each caller an event and the process a warning, and both wait on", async () => {
  const all = [await join("warn"), await join("warn")];
  const told = listen(...all.map(({ locks }) => locks));
  const enough = new AbortController();
  const { names, outcomes } = circle(
    all.map(({ locks }) => locks),
    enough.signal,
  );
  await until(() => told.length === 2);
  expect(told.map(({ name }) => name).sort()).toEqual([...names].sort());
  expect(told.every(({ rejected }) => !rejected)).toBe(true);
  await until(() => warnings.length > 0);
  expect(new Set(warnings)).toEqual(new Set(["DEADLOCK"]));
  await delay(300);
  expect(told.length).toBe(2);
  enough.abort(new Error("enough"));
  for (const one of await Promise.all(outcomes)) expect(one).toMatchObject({ message: "enough" });
});

it("the option off writes nothing and reports nothing", async () => {
  const all = [await join("off"), await join("off")];
  const told = listen(...all.map(({ locks }) => locks));
  const enough = new AbortController();
  const { names, outcomes } = circle(
    all.map(({ locks }) => locks),
    enough.signal,
  );
  await delay(700);
  expect(await leftOf(all[0], names)).toBe(0);
  expect(told).toEqual([]);
  enough.abort(new Error("enough"));
  await Promise.all(outcomes);
});

it("a caller that waits only briefly, or whose scope holds nothing, writes nothing", async () => {
  const [one, other] = [await join(), await join()];
  const [a, b] = [freshName(), freshName()];
  const lease = await other.locks.lock(b).lock();
  const soon = one.locks.lock(a).withLock(() => one.locks.lock(b).withLock({ wait: 150 }, () => "both"));
  await expect(soon).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
  const idle = one.locks.scope(() =>
    one.locks
      .lock(b)
      .lock()
      .then((lease) => lease.unlock()),
  );
  await delay(500);
  expect(await leftOf(one, [a, b])).toBe(0);
  await lease.unlock();
  await idle;
});

it("a chain without a cycle, or a hold released during the search, rejects no caller", async () => {
  const [one, other] = [await join(), await join()];
  const told = listen(one.locks, other.locks);
  const [a, b] = [freshName(), freshName()];
  const held = until(
    async () => (await one.locks.lock(a).isLocked()) && (await one.locks.lock(b).isLocked()),
  );
  const first = one.locks.scope(async () => {
    const lease = await one.locks.lock(a).lock();
    await held;
    const nested = one.locks.lock(b).lock();
    // Its first note stands, and says that it holds this one.
    await until(async () => (await leftOf(one, [a])) > 0);
    await lease.unlock();
    await (await nested).unlock();
    return "both";
  });
  expect(await Promise.all([first, chain(other.locks, b, a, held)])).toEqual(["both", "both"]);
  expect(told).toEqual([]);
});

it("a deadlock of readers with a writer waiting between them only warns: the writer may leave", async () => {
  const [one, other, third] = [await join(), await join(), await join()];
  const told = listen(one.locks, other.locks);
  const [shared, plain] = [freshName(), freshName()];
  const { read } = one.locks.readWriteLock(shared);
  const queued = (n: number) => until(async () => (await read.inspect()).waiters?.length === n);
  const writer = new AbortController();
  const ended = Promise.all([
    read.withLock(async () => {
      await queued(2);
      return one.locks.lock(plain).withLock(() => "both");
    }),
    other.locks.lock(plain).withLock(async () => {
      await queued(1);
      return other.locks.readWriteLock(shared).read.withLock(() => "both");
    }),
  ]);
  await until(() => read.isLocked());
  const writing = third.locks.readWriteLock(shared).write.lock({ signal: writer.signal });
  writing.catch(() => {});
  await until(() => told.length === 2);
  expect(told.every(({ rejected }) => !rejected)).toBe(true);
  writer.abort(new Error("enough"));
  await expect(writing).rejects.toThrow("enough");
  expect(await ended).toEqual(["both", "both"]);
  await until(() => warnings.includes("DEADLOCK"));
});

it("a deadlock through a semaphore only warns", async () => {
  const [one, other] = [await join(), await join()];
  const told = listen(one.locks, other.locks);
  const [name, permits] = [freshName(), freshName()];
  const enough = new AbortController();
  const held = until(
    async () =>
      (await one.locks.lock(name).isLocked()) &&
      (await one.locks.semaphore(permits, { permits: 1 }).inspect()).used === 1,
  );
  const { signal } = enough;
  const both = [
    one.locks.lock(name).withLock(async () => {
      await held;
      return one.locks.semaphore(permits, { permits: 1 }).withPermits({ signal }, () => "both");
    }),
    other.locks.semaphore(permits, { permits: 1 }).withPermits(async () => {
      await held;
      return other.locks.lock(name).withLock({ signal }, () => "both");
    }),
  ];
  const ended = Promise.allSettled(both);
  await until(() => told.length === 2);
  expect(told.every(({ rejected }) => !rejected)).toBe(true);
  enough.abort(new Error("enough"));
  await ended;
  await until(() => warnings.includes("DEADLOCK"));
});
