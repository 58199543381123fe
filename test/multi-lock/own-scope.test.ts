import { beforeAll, describe, expect, it } from "vitest";
import { failure, Gate } from "../contract/observe.ts";
import type { Party } from "../support/fixture.ts";
import { MultiLocks, three } from "../support/multi-locks.ts";
import { until } from "../support/until.ts";

// Multi-locks that come, in one scope, to a lock that another call of the scope holds, or gets
// while they wait.

const several = new MultiLocks();
let mine: Party;
let theirs: Party;
beforeAll(() => {
  ({ mine, theirs } = several);
});

const OFF = { reentrant: false };
/** A call that waits for ever fails its test by this, and not by the time of the whole test. */
const WAIT = { wait: 10_000 };
/** The same, where a call looks once more when its `wait` is over. */
const within = () => ({ signal: AbortSignal.timeout(10_000) });

const waiting = (calls: number): Promise<unknown> =>
  until(() => mine.locks.stats().waiting === calls, { what: `${calls} to wait` });

describe("a multi-lock that waits for its turn in a lock of its scope", () => {
  it("enters another one that the scope gets meanwhile, and keeps it to its own end", async () => {
    const names = three();
    const [a, b] = names;
    const { locks } = mine;
    await locks.scope(async () => {
      const first = await locks.lock(a).lock();
      const inside = new Gate();
      const body = locks.lock(a).withLock(() => inside.passed);
      const both = locks.multiLock([a, b]).withLock(within(), ({ tokens }) => tokens.get(b));
      const second = await locks.lock(b).lock();
      inside.open();
      await body;
      expect(await both).toBe(second.token);
      await Promise.all([first.unlock(), second.unlock()]);
    });
    await several.gone(names);
  });

  it("acquires another one that the scope had meanwhile, and has released", async () => {
    const names = three();
    const [a, b] = names;
    const { locks } = mine;
    await locks.lock(a).withLock(async () => {
      const inside = new Gate();
      const body = locks.lock(a).withLock(() => inside.passed);
      const both = locks.multiLock([a, b]).withLock(WAIT, ({ tokens }) => tokens.get(b));
      const second = await locks.lock(b).lock();
      await second.unlock();
      inside.open();
      await body;
      expect(await both).toBeGreaterThan(second.token);
    });
    await several.gone(names);
  });
});

describe("a multi-lock with a member that it may not enter", () => {
  it.each([
    ["the first", true],
    ["the last", false],
  ])("keeps nothing of its scope while it waits for that member: %s", async (_, isFirst) => {
    const names = three();
    const [a, b] = names;
    const { locks } = mine;
    const members = isFirst ? [locks.lock(a, OFF), b] : [a, locks.lock(b, OFF)];
    await locks.scope(async () => {
      const lease = await locks.multiLock([a, b]).lock();
      const apart = locks.multiLock(members).withLock(WAIT, ({ tokens }) => tokens.get(a));
      await waiting(1);
      const both = locks.multiLock([a, b]).withLock(WAIT, ({ tokens }) => tokens.get(a));
      await lease.unlock();
      expect(await both).toBe(lease.tokens.get(a));
      expect(await apart).toBeGreaterThan(lease.tokens.get(a) ?? 0);
    });
    await several.gone(names);
  });

  it.each(["lock", "withLock"] as const)("two of them, by %s(), never wait for each other", async (how) => {
    const names = three();
    const [a, b] = names;
    const { locks } = mine;
    await locks.scope(async () => {
      const lease = await locks.multiLock([a, b]).lock();
      const calls = [locks.multiLock([a, locks.lock(b, OFF)]), locks.multiLock([locks.lock(a, OFF), b])].map(
        (lock) =>
          how === "lock" ? lock.lock(WAIT).then((taken) => taken.unlock()) : lock.withLock(WAIT, () => {}),
      );
      await waiting(2);
      await lease.unlock();
      await Promise.all(calls);
    });
    await several.gone(names);
  });

  it("leaves what it has entered if its scope gets that member while it waits for a caller of another process", async () => {
    const names = three();
    const [a, b] = names;
    const { locks } = mine;
    const foreign = await theirs.locks.lock(b).lock();
    await locks.scope(async () => {
      const first = await locks.lock(a).lock();
      const single = locks.lock(b).lock(WAIT);
      await several.look(b).queued(1);
      const apart = locks.multiLock([a, locks.lock(b, OFF)]).withLock(WAIT, () => "apart");
      await waiting(2);
      await foreign.unlock();
      const second = await single;
      // The body of `both` has its turn in the first lock only when the other call has left that.
      const both = locks.multiLock([a, b]).withLock(WAIT, () => "both");
      await Promise.all([first.unlock(), second.unlock()]);
      expect(await Promise.all([both, apart])).toEqual(["both", "apart"]);
    });
    await several.gone(names);
  });

  it("enters the others as soon as its scope has released that member", async () => {
    const names = three();
    const [a, b] = names;
    const { locks } = mine;
    for (const [kept, left] of [
      [a, b],
      [b, a],
    ] as const)
      await locks.lock(kept).withLock(async (outer) => {
        const lease = await locks.lock(left).lock();
        const apart = locks.multiLock([kept, locks.lock(left, OFF)]).lock(WAIT);
        await waiting(1);
        await lease.unlock();
        const all = await apart;
        expect(all.tokens.get(kept)).toBe(outer.token);
        expect(all.tokens.get(left)).toBeGreaterThan(lease.token);
        await all.unlock();
      });
    await several.gone(names);
  });

  it("gives the member back if it would have to wait for its turn in the others, and waits in their order", async () => {
    const names = three();
    const [a, b] = names;
    const { locks } = mine;
    await locks.lock(a).withLock(async () => {
      const lease = await locks.lock(b).lock();
      const inside = new Gate();
      const body = locks.lock(a).withLock(() => inside.passed);
      const apart = locks.multiLock([a, locks.lock(b, OFF)]).withLock(WAIT, () => "in");
      await waiting(1);
      await lease.unlock();
      await (await theirs.locks.lock(b).lock(WAIT)).unlock();
      inside.open();
      await body;
      expect(await apart).toBe("in");
    });
    await several.gone(names);
  });

  it("gives up after its time, and never fails as out of order", async () => {
    const names = three();
    const [a, b] = names;
    const { locks } = mine;
    const apart = locks.multiLock([locks.lock(a, OFF), b]);
    const none = locks.multiLock([a, b]);
    const late = { code: "LOCK_TIMEOUT", lockName: a };
    await locks.multiLock([a, b]).withLock(async () => {
      expect(await failure(apart.lock({ wait: 50 }))).toMatchObject(late);
      expect(await failure(apart.withLock({ wait: 50 }, () => {}))).toMatchObject(late);
      expect(await apart.tryLock()).toBeNull();
    });
    // Also where a scope around the one that holds the later lock holds the earlier one.
    await locks.multiLock([a]).withLock(() =>
      locks.multiLock([b]).withLock(async () => {
        expect(await failure(apart.lock({ wait: 50 }))).toMatchObject(late);
        expect(await failure(none.lock({ ...OFF, wait: 50 }))).toMatchObject(late);
      }),
    );
    await locks.multiLock([b]).withLock(async () => {
      expect(await failure(apart.lock({ wait: 50 }))).toMatchObject({ code: "LOCK_ORDER", lockName: a });
    });
    await several.gone(names);
  });
});
