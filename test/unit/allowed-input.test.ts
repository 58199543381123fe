import { afterAll, expect, it } from "vitest";
import { freshName, Parties } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// What stands at the edge of what is allowed gets the lock.

const parties = new Parties();
afterAll(parties.close);

it("allowed input gets the lock", async () => {
  const { locks } = await parties.join({
    client: {
      leaseTime: undefined,
      replyTimeout: undefined,
      grantWindow: Number.POSITIVE_INFINITY,
      localHandoffs: 0,
      linger: 1_500,
      connection: undefined,
    },
  });
  const lock = locks.lock(freshName());
  const { signal } = new AbortController();
  const none = {
    wait: undefined,
    lease: undefined,
    watchdog: undefined,
    maxHold: undefined,
    signal: undefined,
  };
  for (const take of [
    () => lock.tryLock(),
    () => lock.tryLock(undefined, undefined),
    () => lock.tryLock(undefined, 1_000),
    () => lock.tryLock(0, 2 ** 31 - 1),
    () => lock.tryLock(-0),
    () => lock.tryLock(2 ** 31 - 1),
    () => lock.tryLock(Number.POSITIVE_INFINITY, 1_000),
    () => lock.tryLock({}),
    () => lock.tryLock(none),
    () => lock.tryLock(Object.freeze(Object.assign(Object.create(null), { wait: 5 }))),
    () => lock.lock(),
    () => lock.lock(undefined),
    () => lock.lock(none),
    () => lock.lock({ wait: 0, lease: 1_000, watchdog: false, maxHold: Number.POSITIVE_INFINITY, signal }),
    () => lock.lock({ wait: Number.POSITIVE_INFINITY, watchdog: true, maxHold: 1_000 }),
  ]) {
    const lease = await take();
    expect(lease?.held, take.toString()).toBe(true);
    await lease?.unlock();
  }
  expect(await lock.withLock(() => 1)).toBe(1);
  expect(await lock.withLock({ ...none, confirm: undefined }, () => 2)).toBe(2);
  expect(await lock.withLock(undefined as unknown as object, () => 3)).toBe(3);
});

it("the shortest lease is 10 ms", async () => {
  const { locks } = await parties.join();
  const lock = locks.lock(freshName());
  // A busy machine needs longer for two answers, and no lease that is shorter is given.
  const tooShort = { code: "LOCK_UNAVAILABLE", message: expect.stringContaining("lease of 10 ms") };
  const lease = await until(() =>
    lock.tryLock(0, 10).catch((error: unknown) => void expect(error).toMatchObject(tooShort)),
  );
  expect(lease.name).toBe(lock.name);
  await lease.unlock().catch(() => {}); // nor does it release in time
});

it("names that differ only in what a hash tag or a URL would change are different locks", async () => {
  const { locks } = await parties.join();
  const base = freshName();
  const names = [
    "",
    "{",
    "}",
    "%7B",
    "%257B",
    "{}",
    "}{",
    "\0",
    "\n",
    "🔒",
    "é",
    "e\u0301",
    "\\ud83d",
    "\ufffd",
  ];
  const leases = await Promise.all(names.map((end) => locks.lock(`${base}${end}`).tryLock()));
  expect(leases.map((lease) => lease?.held)).toEqual(names.map(() => true));
  for (const lease of leases) await lease?.unlock();
  const long = base + "🔒".repeat((512 - base.length) >> 2);
  const lease = await locks.lock(long).tryLock();
  expect(await locks.lock(long).tryLock()).toBeNull();
  await lease?.unlock();
});
