import { expect, it } from "vitest";
import type { BaseLease, Lease, LockClient, LockEvents } from "../../src/index.ts";
import { createTestLocks } from "../../src/tools/testing/index.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";

// A listener unlocks what belongs to another caller of the same hold, in the statement in which it
// is called. What its event reports is true by then: the step that caused it is over.

const own = new OwnServer();
/** So long that nothing that ends by itself looks as if it had been released. */
const LEASE = 120_000;

async function two(): Promise<{ mine: LockClient; theirs: LockClient; name: string }> {
  const join = () => own.parties.join({ url: own.url, client: { leaseTime: LEASE } });
  const [mine, theirs] = [await join(), await join()];
  return { mine: mine.locks, theirs: theirs.locks, name: freshName() };
}

/** The listener that unlocks these once, in the statement in which an event of that name is told. */
function unlocksAt(locks: LockClient, event: keyof LockEvents, others: () => Promise<unknown>) {
  const unlocked: Promise<unknown>[] = [];
  locks.once(event, (() => {
    unlocked.push(others());
  }) as LockEvents[typeof event]);
  return unlocked;
}

it("a listener of a writer's release unlocks the reader of the same scope: the lock is free, and close() has nothing to wait for", async () => {
  const { mine, theirs, name } = await two();
  const { read, write } = mine.readWriteLock(name);
  await mine.scope(async () => {
    const [writer, reader] = [await write.lock(), await read.lock()];
    const unlocked = unlocksAt(mine, "release", () => reader.unlock());
    await writer.unlock();
    await Promise.all(unlocked);
    expect([unlocked.length, reader.held]).toEqual([1, false]);
  });
  const next = await theirs.readWriteLock(name).write.tryLock(LEASE / 2);
  expect(next?.held).toBe(true);
  await next?.unlock();
});

it("a listener of a reader's release unlocks the other reader: both calls resolve, and the lock is free", async () => {
  const { mine, theirs, name } = await two();
  const { read } = mine.readWriteLock(name);
  const [first, second] = [await read.lock(), await read.lock()];
  const unlocked = unlocksAt(mine, "release", () => second.unlock());
  await first.unlock();
  await Promise.all(unlocked);
  const next = await theirs.readWriteLock(name).write.tryLock(LEASE / 2);
  expect([unlocked.length, next?.held]).toEqual([1, true]);
  await next?.unlock();
});

it("a listener of a reader's release unlocks the other one of a cached hold: `kept` counts it once", async () => {
  // In virtual time: a cached hold that is not fresh any more gets another one beside it.
  const mine = createTestLocks({ leaseTime: LEASE, linger: 1_000 });
  const theirs = mine.test.another();
  const { read } = mine.readWriteLock("a");
  // Often enough that the client caches it.
  for (let i = 0; i < 50; i++) await read.withLock(() => {});
  const [first, second] = [await read.lock(), await read.lock()];
  const unlocked = unlocksAt(mine, "release", () => second.unlock());
  await first.unlock();
  await Promise.all(unlocked);
  expect(mine.stats().kept).toBe(1);
  await (await theirs.readWriteLock("a").write.lock({ wait: LEASE / 2 })).unlock();
  expect(mine.stats().kept).toBe(0);
  await theirs.close();
  await mine.close();
});

it("a listener of a permit's release gives the last one back: both calls resolve, and both are free", async () => {
  const { mine, theirs, name } = await two();
  const slots = mine.semaphore(name, { permits: 2 });
  const [first, second] = await Promise.all([slots.acquire(), slots.acquire()]);
  const unlocked = unlocksAt(mine, "release", () => second.release());
  await first.release();
  await Promise.all(unlocked);
  const next = await theirs.semaphore(name, { permits: 2 }).acquire(2, { wait: LEASE / 2 });
  expect([unlocked.length, next.held]).toEqual([1, true]);
  await next.release();
});

it("a listener of one caller's loss finds that no caller of the same hold has it any more", async () => {
  const { mine, name } = await two();
  const { read } = mine.readWriteLock(name);
  const leases: BaseLease[] = [await read.lock(), await read.lock(), await read.lock()];
  const seen: boolean[][] = [];
  const look = (): unknown => seen.push(leases.map(({ held }) => held));
  for (const { signal } of leases) signal.addEventListener("abort", look);
  mine.on("lost", look);
  await own.admin.del(`holdfast:rw:{${name}}`);
  // The answer says that the hold is gone.
  await expect(leases[0]?.extend(LEASE)).rejects.toMatchObject({ code: "LOCK_LOST" });
  expect(seen).toEqual(Array.from({ length: 6 }, () => [false, false, false]));
});

it("a listener of one caller's `wait` aborts the other: `giveup` comes after the `wait` of the same call", async () => {
  const { mine, theirs, name } = await two();
  const held = await theirs.lock(name).lock();
  await mine.lock(freshName()).withLock(() => {});
  const enough = new AbortController();
  const told: (readonly [string, number])[] = [];
  mine.once("wait", () => enough.abort("enough"));
  for (const event of ["wait", "giveup", "acquire"] as const)
    mine.on(event, (({ call }: { call: number }) => told.push([event, call])) as LockEvents[typeof event]);
  const [first, second] = [mine.lock(name).lock(), mine.lock(name).lock({ signal: enough.signal })];
  await expect(second).rejects.toBe("enough");
  await held.unlock();
  await (await first).unlock();
  const [call = 0] = told.map(([, one]) => one);
  expect(told).toEqual([
    ["wait", call],
    ["wait", call + 1],
    ["giveup", call + 1],
    ["acquire", call],
  ]);
});

it("a listener of `acquire` that makes a call: each call has a number of its own", async () => {
  const { mine, name } = await two();
  const { read } = mine.readWriteLock(name);
  const first = await read.lock();
  const calls: number[] = [];
  const made: Promise<Lease>[] = [];
  mine.on("acquire", ({ call }) => {
    calls.push(call);
    if (made.length < 3) made.push(read.lock());
  });
  await (await read.lock()).unlock();
  const leases = [first, ...(await Promise.all(made))];
  expect([calls.length, new Set(calls).size]).toEqual([4, 4]);
  for (const lease of leases) await lease.unlock();
});
