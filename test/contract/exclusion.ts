import { describe, expect, it, onTestFinished } from "vitest";
import { until } from "../support/until.ts";
import { Gate, Section } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** At most one holder, whichever callers ask from wherever; and no waiter is forgotten. */
export function exclusion(subject: Subject): void {
  describe("exclusion", () => {
    it("excludes two clients on one connection, and two callers of one lock object", async () => {
      const { mine, name } = subject.pair();
      const twin = subject.create(subject.first.redis);
      onTestFinished(() => twin.close({ grace: 0 }));
      const lease = await mine.lock();
      expect([await subject.on(twin, name).tryLock(), await mine.tryLock()]).toEqual([null, null]);
      await lease.unlock();
    });

    it("excludes two scopes that share a lock object", async () => {
      const { mine } = subject.pair();
      const section = new Section();
      const scope = () =>
        subject.first.locks.scope(async () => {
          const outer = await mine.lock();
          const inner = await mine.lock();
          await section.visit();
          await inner.unlock();
          await section.visit();
          await outer.unlock();
        });
      await Promise.all([scope(), scope(), mine.withLock(section.visit), scope()]);
      expect(section).toMatchObject({ most: 1, visits: 7 });
    });

    it("excludes callers of several clients, and serves all of them", async () => {
      const { mine, theirs } = subject.pair();
      const section = new Section();
      const locks = Array.from({ length: 40 }, (_, caller) => (caller % 2 === 0 ? mine : theirs));
      await Promise.all(locks.map((lock) => lock.withLock(section.visit)));
      expect(section).toMatchObject({ most: 1, visits: 40 });
    });

    it("ignores a second unlock(): the next holder keeps the lock", async () => {
      const { name, mine, theirs } = subject.pair();
      const lease = await mine.lock();
      await lease.unlock();
      const next = await theirs.lock();
      await subject.untilEverywhere(name); // of several masters one may hear of it late
      await expect(lease.unlock()).resolves.toBeUndefined();
      await expect(lease[Symbol.asyncDispose]()).resolves.toBeUndefined();
      expect([next.held, await subject.first.redis.exists(subject.key(name))]).toEqual([true, 1]);
      await next.unlock(); // rejects if it had been released
    });

    it("answers two simultaneous unlocks with one release", async () => {
      const { mine, theirs } = subject.pair();
      const lease = await mine.lock();
      const waiter = theirs.lock();
      await subject.untilWaiting(mine.name, 1);
      await Promise.all([lease.unlock(), lease.unlock()]);
      const next = await waiter;
      expect(next.held).toBe(true);
      await next.unlock();
    });

    it("has no unlock() on the lock, and an error that says to keep the lease", async () => {
      const { mine } = subject.pair();
      const misused = mine as unknown as { unlock(): void };
      expect(() => misused.unlock()).toThrow(TypeError);
      expect(() => misused.unlock()).toThrow(/keep the lease.*lease\.(unlock|release)\(\)/);
    });

    it("hands the lock on when its holder's body fails", async () => {
      const { mine, theirs } = subject.pair();
      const [inside, gate] = [new Gate(), new Gate()];
      const failing = mine.withLock(async () => {
        inside.open();
        await gate.passed;
        throw new Error("out of stock");
      });
      await inside.passed;
      const waiter = theirs.withLock(() => "served");
      await until(async () => (await subject.waiting(mine.name)) > 0);
      gate.open();
      await expect(failing).rejects.toThrow("out of stock");
      expect(await waiter).toBe("served");
    });
  });
}
