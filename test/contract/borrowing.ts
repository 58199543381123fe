import { describe, expect, it } from "vitest";
import { LockTimeoutError } from "../../src/index.ts";
import { until } from "../support/until.ts";
import { failure, Gate, Section, watchTraffic } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** Inside a body the lock is borrowed: nested bodies need no command, and still exclude each other. */
export function borrowing(subject: Subject): void {
  describe("borrowing", () => {
    it("gives a nested body the same lease, and sends nothing", async () => {
      const { mine } = subject.pair();
      await mine.withLock(async (outer) => {
        const traffic = watchTraffic(subject.first);
        const value = await mine.withLock(async (inner) => {
          expect([inner.token, inner.held]).toEqual([outer.token, true]);
          expect(inner.signal).toBe(outer.signal);
          return mine.withLock(() => 42);
        });
        expect([value, outer.held, traffic.commands]).toEqual([42, true, 0]);
      });
    });

    it("excludes the siblings of a Promise.all", async () => {
      const { mine } = subject.pair();
      const section = new Section();
      await mine.withLock(() => Promise.all(Array.from({ length: 5 }, () => mine.withLock(section.visit))));
      expect(section).toMatchObject({ most: 1, visits: 5 });
    });

    it("excludes the children of siblings, which do not wait for themselves", async () => {
      const { mine } = subject.pair();
      const section = new Section();
      const child = () => mine.withLock(() => Promise.all([1, 2].map(() => mine.withLock(section.visit))));
      await mine.withLock(() => Promise.all([child(), child()]));
      expect(section).toMatchObject({ most: 1, visits: 4 });
    });

    it("lets a borrower wait for its turn no longer than its wait", async () => {
      const { mine } = subject.pair();
      const gate = new Gate();
      await mine.withLock(async (lease) => {
        const first = mine.withLock(() => gate.passed);
        const asked = performance.now();
        const error = await failure(mine.withLock({ wait: 50 }, () => {}));
        expect(error).toBeInstanceOf(LockTimeoutError);
        expect(performance.now() - asked).toBeGreaterThanOrEqual(40);
        expect(await failure(mine.withLock({ wait: 0 }, () => {}))).toBeInstanceOf(LockTimeoutError);
        const controller = new AbortController();
        const aborted = failure(mine.withLock({ signal: controller.signal }, () => {}));
        controller.abort("enough");
        expect(await aborted).toBe("enough");
        gate.open();
        await first;
        expect(lease.held).toBe(true);
      });
    });

    it("admits the next borrower when one fails, and keeps the lock", async () => {
      const { mine, theirs } = subject.pair();
      await mine.withLock(async (lease) => {
        const failing = mine.withLock(() => {
          throw new Error("a nested body failed");
        });
        const next = mine.withLock(() => "next");
        await expect(failing).rejects.toThrow("a nested body failed");
        expect([await next, lease.held, await theirs.tryLock()]).toEqual(["next", true, null]);
      });
    });

    it("holds the lock until the last borrower has ended, also after the body", async () => {
      const { name, mine, theirs } = subject.pair();
      const gate = new Gate();
      let borrower: Promise<void> | undefined;
      let waiter: Promise<string> | undefined;
      await mine.withLock(() => {
        borrower = mine.withLock(() => gate.passed);
        waiter = mine.withLock(() => "also waited for");
      });
      expect(await theirs.tryLock()).toBe(null);
      gate.open();
      await borrower;
      expect(await waiter).toBe("also waited for");
      await until(async () => (await subject.first.redis.exists(subject.key(name))) === 0);
    });

    it("excludes others while it is borrowed", async () => {
      const { mine, theirs } = subject.pair();
      await mine.withLock(() =>
        mine.withLock(async () => {
          expect(await theirs.tryLock()).toBe(null);
        }),
      );
      await (await theirs.lock({ wait: 10_000 })).unlock();
    });

    it("extends the lease for a nested body that asks for a longer one", async () => {
      const { name, mine } = subject.pair();
      await mine.withLock({ lease: 10_000 }, async (outer) => {
        await mine.withLock({ lease: 20_000 }, async (inner) => {
          expect(inner.remaining).toBeGreaterThan(15_000);
          // Of several masters this one may be the last to hear of it.
          await until(async () => (await subject.first.redis.pttl(subject.key(name))) > 15_000);
        });
        await mine.withLock({ lease: 1_000 }, () => {});
        expect(outer.remaining).toBeGreaterThan(15_000);
      });
    });
  });
}
