import { describe, expect, it } from "vitest";
import { watchTraffic } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** `tryLock` and `lock` re-enter by count what their scope holds. */
export function scopes(subject: Subject): void {
  const scope = <T>(body: () => T | PromiseLike<T>) => subject.first.locks.scope(body);

  describe("scopes", () => {
    it("re-enters by count: the last unlock releases the lock", async () => {
      const { mine, theirs } = subject.pair();
      await scope(async () => {
        const outer = await mine.lock();
        const inner = await mine.lock({ wait: 0 });
        expect([inner.token, inner.held]).toEqual([outer.token, true]);
        expect(inner.signal).not.toBe(outer.signal); // each ends by itself
        await outer.unlock(); // in any order
        expect([outer.held, inner.held, await theirs.tryLock()]).toEqual([false, true, null]);
        await outer.unlock(); // counts once
        expect([inner.held, await theirs.tryLock()]).toEqual([true, null]);
        await inner.unlock();
        expect(inner.signal.aborted).toBe(false);
        await (await theirs.lock({ wait: 10_000 })).unlock();
      });
    });

    it("re-enters inside a body", async () => {
      const { mine, theirs } = subject.pair();
      await mine.withLock(async (outer) => {
        const inner = await mine.tryLock();
        expect([inner?.token, inner?.held]).toEqual([outer.token, true]);
        await inner?.unlock();
        expect([outer.held, await theirs.tryLock()]).toEqual([true, null]);
      });
    });

    it("borrows inside a scope what the scope holds", async () => {
      const { mine } = subject.pair();
      await scope(async () => {
        const lease = await mine.lock();
        expect(await mine.withLock((borrowed) => borrowed.token)).toBe(lease.token);
        expect(lease.held).toBe(true);
        await lease.unlock();
      });
    });

    it.skipIf(subject.isRedissons)("re-enters and leaves without a command", async () => {
      const { mine } = subject.pair();
      await (await mine.lock()).unlock(); // a script that is not known is sent twice
      await scope(async () => {
        const outer = await mine.lock();
        const traffic = watchTraffic(subject.first);
        const inner = await mine.lock();
        await inner.unlock();
        // Of several masters this one may not have been among the first to answer: then its late
        // vote is confirmed, which is one command, and it is told of the end once more. To enter
        // and to leave would be two.
        const late = subject.isQuorum ? 1 : 0;
        expect(traffic.commands).toBeLessThanOrEqual(late);
        await outer.unlock();
        expect(traffic.commands).toBeGreaterThanOrEqual(subject.lingers ? 0 : 1);
        expect(traffic.commands).toBeLessThanOrEqual(1 + 2 * late);
      });
    });

    it("extends to a longer lease, and never shortens to a shorter one", async () => {
      const { name, mine } = subject.pair();
      await scope(async () => {
        const outer = await mine.lock({ lease: 10_000 });
        const longer = await mine.lock({ lease: 20_000 });
        expect([outer, longer].every((lease) => lease.remaining > 15_000)).toBe(true);
        const shorter = await mine.lock({ lease: 100 });
        expect(shorter.remaining).toBeGreaterThan(15_000);
        expect(await subject.first.redis.pttl(subject.key(name))).toBeGreaterThan(15_000);
        for (const lease of [shorter, longer, outer]) await lease.unlock();
      });
    });

    it("knows what it holds: isHeldHere", async () => {
      const { mine, theirs } = subject.pair();
      expect(mine.isHeldHere()).toBe(false);
      await mine.withLock(async () => {
        expect([mine.isHeldHere(), theirs.isHeldHere()]).toEqual([true, false]);
        expect(subject.of(subject.first, mine.name).isHeldHere()).toBe(true); // by name, not by object
        expect(await scope(() => mine.isHeldHere())).toBe(true); // a scope inside
      });
      await scope(async () => {
        const lease = await mine.lock();
        expect(mine.isHeldHere()).toBe(true);
        await lease.unlock();
        expect(mine.isHeldHere()).toBe(false);
      });
      const lease = await mine.lock();
      expect(mine.isHeldHere()).toBe(false); // outside of any scope every acquisition is a stranger
      await scope(() => expect(mine.isHeldHere()).toBe(false));
      await lease.unlock();
    });
  });
}
