import { describe, expect, it } from "vitest";
import { failure, Gate, Section } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** Calls of one scope that run at the same time: what one of them gets, the others enter again. */
export function sideBySide(subject: Subject): void {
  const scope = <T>(body: () => T | PromiseLike<T>) => subject.first.locks.scope(body);

  describe("side by side in one scope", () => {
    it("two calls of lock() share the lock, and the last unlock releases it", async () => {
      const { mine, theirs } = subject.pair();
      await scope(async () => {
        const [a, b] = await Promise.all([mine.lock(), mine.lock()]);
        expect([a.held, b.held, b.token]).toEqual([true, true, a.token]);
        await a.unlock();
        expect([b.held, await theirs.tryLock()]).toEqual([true, null]);
        await b.unlock();
        await (await theirs.lock({ wait: 10_000 })).unlock();
      });
    });

    it("tryLock() enters what an earlier call gets", async () => {
      const { mine } = subject.pair();
      await scope(async () => {
        const leases = await Promise.all([mine.lock(), mine.tryLock(), mine.tryLock(), mine.tryLock(100)]);
        expect(leases.map((lease) => lease?.held)).toEqual([true, true, true, true]);
        await Promise.all(leases.map((lease) => lease?.unlock()));
      });
    });

    it("tryLock() does not wait for a call that waits", async () => {
      const { name, mine, theirs } = subject.pair();
      const foreign = await theirs.lock();
      await scope(async () => {
        const waiting = mine.lock();
        await subject.untilWaiting(name, 1);
        expect(await mine.tryLock()).toBe(null);
        await foreign.unlock();
        await (await waiting).unlock();
      });
    });

    it.each(["first", "second"])("when the %s gives up, the other one waits on", async (which) => {
      const { mine, theirs } = subject.pair();
      const foreign = await theirs.lock();
      await scope(async () => {
        const early = which === "first" ? failure(mine.lock({ wait: 50 })) : null;
        const waiting = mine.lock();
        const lost = early ?? failure(mine.lock({ wait: 50 }));
        expect(await lost).toMatchObject({ code: "LOCK_TIMEOUT" });
        await foreign.unlock();
        const lease = await waiting;
        expect(lease.held).toBe(true);
        await lease.unlock();
      });
    });

    it("when one aborts, the other one waits on", async () => {
      const { name, mine, theirs } = subject.pair();
      const foreign = await theirs.lock();
      const controller = new AbortController();
      await scope(async () => {
        const aborted = failure(mine.lock({ signal: controller.signal }));
        const waiting = mine.lock();
        await subject.untilWaiting(name, subject.isFair ? 2 : 1);
        controller.abort("enough");
        expect(await aborted).toBe("enough");
        await foreign.unlock();
        await (await waiting).unlock();
      });
    });

    it("many calls that wait for another process enter together", async () => {
      const { name, mine, theirs } = subject.pair();
      const foreign = await theirs.lock();
      await scope(async () => {
        const waiting = Array.from({ length: 20 }, () => mine.lock());
        await subject.untilWaiting(name, subject.isFair ? 20 : 1);
        await foreign.unlock();
        const leases = await Promise.all(waiting);
        expect(new Set(leases.map(({ token }) => token)).size).toBe(1);
        await Promise.all(leases.map((lease) => lease.unlock()));
      });
    });

    it("a body beside a lease borrows it, and a lease beside a body waits for its end", async () => {
      const { mine } = subject.pair();
      await scope(async () => {
        const section = new Section();
        const [lease] = await Promise.all([
          mine.lock(),
          mine.withLock(section.visit),
          mine.withLock(section.visit),
        ]);
        expect(section).toMatchObject({ most: 1, visits: 2 });
        await lease.unlock();
        const [, later] = await Promise.all([mine.withLock(section.visit), mine.lock()]);
        expect(section.visits).toBe(3);
        await later.unlock();
      });
    });

    it("a body that cannot borrow in its time is refused", async () => {
      const { mine } = subject.pair();
      const gate = new Gate();
      await scope(async () => {
        const [lease, , late] = await Promise.all([
          mine.lock(),
          mine.withLock(() => gate.passed),
          failure(mine.withLock({ wait: 50 }, () => {})).finally(gate.open),
        ]);
        expect(late).toMatchObject({ code: "LOCK_TIMEOUT" });
        await lease.unlock();
      });
    });

    it("a call in an inner scope enters what the outer scope gets", async () => {
      const { mine } = subject.pair();
      await scope(async () => {
        const [outer, inner] = await Promise.all([
          mine.lock(),
          scope(async () => {
            await using lease = await mine.lock();
            return lease.token;
          }),
        ]);
        expect(inner).toBe(outer.token);
        await outer.unlock();
      });
    });

    it("strangers stay strangers", async () => {
      const { name, mine } = subject.pair();
      const lease = await scope(async () => {
        const [lease] = await Promise.all([mine.lock(), scope(() => expect(mine.isHeldHere()).toBe(false))]);
        const other = subject.first.locks.outside(() => subject.of(subject.first, name).tryLock(50));
        expect(await other).toBe(null);
        await lease.unlock();
        return lease;
      });
      expect(lease.held).toBe(false);
    });
  });
}
