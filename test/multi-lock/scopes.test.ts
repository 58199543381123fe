import { beforeAll, describe, expect, it } from "vitest";
import { LockLostError } from "../../src/index.ts";
import { failure, Gate, lossOf, record, Section } from "../contract/observe.ts";
import { countCommands } from "../support/command-count.ts";
import type { Party } from "../support/fixture.ts";
import { MultiLocks, three } from "../support/multi-locks.ts";

// Several locks as one inside scopes: what they share with single locks and with each other.

const several = new MultiLocks();
let mine: Party;
let theirs: Party;
beforeAll(() => {
  ({ mine, theirs } = several);
});

describe("scopes", () => {
  it("know every member: nested single locks, smaller and equal multi-locks borrow, and send nothing", async () => {
    const names = three();
    const [a, b, c] = names;
    const { locks } = mine;
    const lock = locks.multiLock(names);
    const section = new Section();
    await lock.withLock(async (outer) => {
      const count = await countCommands(theirs.redis);
      expect([lock.isHeldHere(), locks.lock(b).isHeldHere(), locks.multiLock([a, "x"]).isHeldHere()]).toEqual(
        [true, true, false],
      );
      await locks.lock(b).withLock((inner) => expect(inner.token).toBe(outer.tokens.get(b)));
      await lock.withLock((inner) => expect(inner.tokens.get(c)).toBe(outer.tokens.get(c)));
      await Promise.all([
        locks.multiLock([a, b]).withLock(section.visit),
        lock.withLock(section.visit),
        locks.lock(b).withLock(section.visit),
      ]);
      const again = await locks.multiLock([c, b]).lock();
      expect(again.tokens.get(b)).toBe(outer.tokens.get(b));
      await again.unlock();
      expect([outer.held, section.most, section.visits]).toEqual([true, 1, 3]);
      expect(await count.scripts()).toBe(0);
    });
    expect(lock.isHeldHere()).toBe(false);
    await several.gone(names);
  });

  it("let a multi-lock acquire what comes after what they hold", async () => {
    const names = three();
    const [a, , c] = names;
    await mine.locks.lock(a).withLock(async (single) => {
      await mine.locks.multiLock(names).withLock(async (all) => {
        expect(all.tokens.get(a)).toBe(single.token);
        expect(await several.holders(names)).toEqual(Array(3).fill(mine.locks.id));
      });
      expect(await several.holders([a, c])).toEqual([mine.locks.id, ""]);
      const again = await mine.locks.multiLock(names).lock({ lease: 60_000 });
      expect(again.remaining).toBeGreaterThan(50_000);
      await again.unlock();
      expect(single.held).toBe(true);
    });
    await several.gone(names);
  });

  it("refuse a multi-lock that would wait for what comes before what they hold, and let it try without waiting", async () => {
    const names = three();
    const [a, , c] = names;
    await mine.locks.lock(c).withLock(async () => {
      const lock = mine.locks.multiLock(names);
      for (const call of [() => lock.lock(), () => lock.tryLock(5), () => lock.withLock(() => {})])
        expect(await failure(call())).toMatchObject({ code: "LOCK_ORDER", lockName: a });
      const lease = await lock.tryLock();
      expect(lease?.held).toBe(true);
      await lease?.unlock();
      const held = await theirs.locks.lock(a).lock();
      expect(await lock.tryLock()).toBeNull();
      await held.unlock();
      expect(mine.locks.lock(c).isHeldHere()).toBe(true);
    });
    await several.gone(names);
  });

  it("refuse one that comes before what an outer multi-lock holds, with other members", async () => {
    const [a, b, c] = three();
    const inside = new Gate();
    const outer = mine.locks.multiLock([a, c]).withLock(async () => {
      const others = theirs.locks.multiLock([b, c]).withLock({ wait: 10_000 }, () => {});
      await several.look(c).queued(1); // they hold b, and wait for c
      for (const members of [[b], [a, b]])
        expect(await failure(mine.locks.multiLock(members).withLock(() => {}))).toMatchObject({
          code: "LOCK_ORDER",
          lockName: b,
        });
      expect(await mine.locks.multiLock([b]).tryLock()).toBeNull();
      await mine.locks.multiLock([`${c}:behind`]).withLock(() => inside.open());
      return { others };
    });
    await (await outer).others;
    await inside.passed;
    // A single lock around it says nothing of an order.
    await mine.locks.lock(c).withLock(() => mine.locks.multiLock([a, b]).withLock(() => {}));
    await several.gone([a, b, c]);
  });

  it("let a multi-lock wait for what comes before a lock that was lost", async () => {
    const [a, , c] = three();
    const { locks } = await several.join();
    await locks.scope(async () => {
      const late = await locks.multiLock([c]).lock({ lease: 1_000 });
      await lossOf(late.signal);
      await (await locks.multiLock([a]).lock({ wait: 1_000 })).unlock();
    });
    await several.gone([a, c]);
  });

  it("refuse a loan that would wait out of order for a caller that waits for this one; alone, it is given", async () => {
    const names = three();
    const [a, b] = names;
    const { locks } = mine;
    const [borrowed, waiting] = [new Gate(), new Gate()];
    await locks.multiLock(names).withLock(async () => {
      const first = locks.multiLock([b]).withLock(async () => {
        await borrowed.passed;
        return failure(locks.multiLock([a, b]).withLock({ wait: 10_000 }, () => {}));
      });
      const second = locks.multiLock([a]).withLock(async () => {
        borrowed.open();
        return waiting.passed.then(() => locks.multiLock([b]).withLock(() => "in"));
      });
      expect(await first).toMatchObject({ code: "LOCK_ORDER", lockName: a });
      waiting.open();
      expect(await second).toBe("in");
      await locks.multiLock([b]).withLock(() => locks.multiLock([a, b]).withLock(() => {}));
    });
    await several.gone(names);
  });

  it("wait for a turn to borrow no longer than asked, and leave all gates open afterwards", async () => {
    const names = three();
    const [a, b] = names;
    const gate = new Gate();
    const lock = mine.locks.multiLock(names);
    await lock.withLock(async () => {
      const borrowing = mine.locks.lock(b).withLock(() => gate.passed);
      const error = await failure(lock.withLock({ wait: 50 }, () => {}));
      expect(error).toMatchObject({ code: "LOCK_TIMEOUT", lockName: b });
      await mine.locks.lock(a).withLock(() => {});
      gate.open();
      await borrowing;
      await lock.withLock(() => {});
    });
    await several.gone(names);
  });

  it("end what was left in them, and report each", async () => {
    const names = three();
    const { locks } = await several.join();
    const told = record(locks);
    const lease = await locks.scope(async () => {
      const lease = await locks.multiLock(names).lock();
      expect(lease.signal.aborted).toBe(false);
      return lease;
    });
    expect(told.error).toMatchObject(names.map((lockName) => ({ code: "LOCK_LEFT_BEHIND", lockName })));
    expect(told.lost).toMatchObject(names.map((name) => ({ name, error: { reason: "scope" } })));
    expect(told.release).toEqual([]);
    expect([lease.held, await lossOf(lease.signal)]).toEqual([false, "scope"]);
    const losses = (await failure(lease.unlock())) as AggregateError;
    expect(losses.errors).toEqual(told.lost.map(({ error }) => error));
    await lease.unlock(); // its loss was told once
    await several.gone(names);
  });

  it("end only the parts of a multi-lock that no other user has, and leave the rest to the body around them", async () => {
    const names = three();
    const [a, b, c] = names;
    const { locks } = await several.join();
    const told = record(locks);
    const outer = locks.lock(a).withLock(async (single) => {
      const lease = await locks.scope(() => locks.multiLock(names).lock());
      await several.gone([b, c]);
      expect([single.held, single.signal.aborted, lease.held]).toEqual([true, false, false]);
      expect(await several.holders([a])).toEqual([locks.id]);
      expect(await failure(lease.unlock())).toBeInstanceOf(AggregateError);
      expect(() => lease.assertHeld()).toThrow(/'.*' was lost: the scope in which it was taken ended/);
    });
    await outer;
    expect(told.lost.map(({ name, remains = false }) => [name, remains])).toEqual([
      [a, true],
      [b, false],
      [c, false],
    ]);
    expect(told.release.map(({ name }) => name)).toEqual([a]);
    await several.gone(names);
  });

  it("that are bodies end nothing: a multi-lock of another caller keeps its locks to its own end", async () => {
    const names = three();
    const { locks } = await several.join();
    const told = record(locks);
    const lease = await locks.multiLock(names).withLock(() => locks.multiLock(names).lock());
    expect([lease.held, lease.signal.aborted]).toEqual([true, false]);
    expect(await several.holders(names)).toEqual(Array(3).fill(locks.id));
    // Nobody enters it through a scope that has ended.
    expect(await locks.lock(names[1]).tryLock()).toBeNull();
    await lease.unlock();
    expect([told.lost, told.error, told.release.length]).toEqual([[], [], 3]);
    await several.gone(names);
  });

  it("in which a member was lost reject nested acquisitions", async () => {
    const names = three();
    const { locks } = await several.join({ leaseTime: 3_000 });
    const lock = locks.multiLock(names);
    const seen: unknown[] = [];
    const outer = failure(
      lock.withLock(async ({ signal }) => {
        await mine.redis.del(several.look(names[1]).keys.lock);
        await lossOf(signal);
        seen.push(await failure(lock.lock()), await failure(lock.withLock(() => {})));
      }),
    );
    expect(await outer).toBeInstanceOf(LockLostError);
    expect(seen).toMatchObject([{ lockName: names[1] }, { lockName: names[1] }]);
    await several.gone(names);
  });
});
