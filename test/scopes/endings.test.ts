import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Lease } from "../../src/index.ts";
import { failure, Gate, record } from "../contract/observe.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { lockOf } from "../support/permit.ts";
import { until } from "../support/until.ts";

// What the ends of scopes and bodies cost, and what they must not do, beside what every kind of
// lock promises: test/contract/leases-left-behind.ts.

const parties = new Parties();
let a: Party;
let b: Party;

beforeAll(async () => {
  [a, b] = [await parties.join(), await parties.join()];
  a.locks.on("error", () => {}); // leases that these tests leave behind on purpose
});
afterAll(parties.close);

describe("the end of a scope", () => {
  it("notifies the caller before the next one enters", async () => {
    const { locks } = await parties.join();
    const told = record(locks);
    const lock = locks.lock(freshName());
    let lease: Lease | undefined;
    const seen: unknown[] = [];
    await locks.scope(async () => {
      const own = await lock.lock();
      lease = own;
      const { signal } = own;
      locks.outside(() => {
        locks.on("acquire", () => void seen.push(signal.aborted, own.held));
        void lock.withLock(() => {}); // gets it by a pass, in the statement of the scope's end
      });
      await until(() => told.wait.length === 1);
    });
    await until(() => seen.length > 0);
    expect(seen).toEqual([true, false]);
    expect(lease?.held).toBe(false);
  });

  it("ends an extension under way, and releases made by listeners succeed", async () => {
    const { locks } = await parties.join();
    const told = record(locks);
    const [first, second] = [freshName(), freshName()];
    const unlocked: Promise<void>[] = [];
    let extended: Promise<unknown> | undefined;
    await locks.scope(async () => {
      const one = await locks.lock(first).lock();
      const other = await locks.lock(second).lock();
      one.signal.addEventListener("abort", () => unlocked.push(other.unlock()));
      extended = failure(one.extend(60_000));
    });
    expect(await extended).toMatchObject({ code: "LOCK_LOST", reason: "scope" });
    await Promise.all(unlocked);
    expect(told.lost.map(({ name }) => name)).toEqual([first]);
    expect(told.release.map(({ name }) => name)).toEqual([second]);
    await (await b.locks.multiLock([first, second]).lock({ wait: 10_000 })).unlock();
  });

  it.each(["lock", "redissonLock"] as const)(
    "leaves a lease that a call got just then to the scope around it: %s",
    async (kind) => {
      const { locks } = await parties.join();
      const told = record(locks);
      const lock = lockOf(locks, kind, freshName());
      const lease = await locks.scope(async () => {
        await using _ = await lock.lock();
        let call: Promise<Lease> | undefined;
        await locks.scope(() => {
          call = lock.lock(); // enters at once, and has its lease when the scope is over
        });
        const lease = await call;
        expect(lease?.held).toBe(true);
        return lease;
      });
      expect(await failure(lease?.unlock() ?? Promise.resolve())).toMatchObject({ reason: "scope" });
      expect(told.error.length).toBe(1);
      await (await lockOf(b.locks, kind, lock.name).lock({ wait: 10_000 })).unlock();
    },
  );
});

describe("a lease that outlives its body", () => {
  const timersOf = ({ locks }: Party) =>
    (locks as unknown as { locks: { watchdog: { timers: { size: number } } } }).locks.watchdog.timers;

  it("keeps neither its process alive nor a timer when it is unlocked", async () => {
    const party = await parties.join();
    const timers = () => process.getActiveResourcesInfo().filter((one) => one === "Timeout").length;
    const lock = party.locks.lock(freshName());
    const [before, alive] = [timersOf(party).size, timers()];
    const left = await lock.withLock(() => Promise.all([lock.lock(), lock.lock(), lock.lock()]));
    // One for the renewals, and one for each report, which is 30 s away.
    expect(timersOf(party).size).toBe(before + 4);
    // Without `until`, whose own timer keeps a process alive.
    for (const end = performance.now() + 10_000; timers() > alive && performance.now() < end; )
      await nextTurn();
    expect(timers()).toBeLessThanOrEqual(alive);
    for (const lease of left) await lease.unlock();
    expect(timersOf(party).size).toBeLessThanOrEqual(before + 1);
    expect(await lock.isLocked()).toBe(false);
  });

  it("is a hold that calls enter while the body lives, and not afterwards", async () => {
    const lock = a.locks.lock(freshName());
    const [inside, over] = [new Gate(), new Gate()];
    const chain: Promise<unknown>[] = [];
    const left = await lock.withLock(async () => {
      const first = await lock.lock();
      // A body that borrows waits for its turn, and counts from its call on.
      const busy = lock.withLock(() => inside.passed);
      chain.push(
        busy,
        lock.withLock(() => over.open()),
      );
      chain.push(inside.passed.then(() => lock.tryLock()));
      return first;
    });
    inside.open();
    await over.passed; // it had asked while the body lived
    expect(await chain[2]).toBeNull();
    expect([left.held, await b.locks.lock(lock.name).tryLock()]).toEqual([true, null]);
    await left.unlock();
    await Promise.all(chain);
    await (await b.locks.lock(lock.name).lock({ wait: 10_000 })).unlock();
  });
});
