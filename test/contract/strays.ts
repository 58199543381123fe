import { describe, expect, it, onTestFinished } from "vitest";
import type { Lease } from "../../src/index.ts";
import { until } from "../support/until.ts";
import { Gate } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** What outlives its scope: leases are released, code becomes a stranger. */
export function strays(subject: Subject): void {
  const scope = <T>(body: () => T | PromiseLike<T>) => subject.first.locks.scope(body);

  describe("after a scope", () => {
    it("releases and reports what a scope left behind", async () => {
      const { name, mine, theirs } = subject.pair();
      const errors: Error[] = [];
      const listener = (error: Error) => errors.push(error);
      subject.first.locks.on("error", listener);
      onTestFinished(() => void subject.first.locks.off("error", listener));
      let left: Lease | undefined;
      await scope(async () => {
        left = await mine.lock();
        await mine.lock(); // both entries
      });
      expect(left?.held).toBe(false);
      await (await theirs.lock({ wait: 10_000 })).unlock();
      expect(errors.map((error) => Object.entries(error))).toEqual(
        [1, 2].map(() =>
          expect.arrayContaining([
            ["code", "LOCK_LEFT_BEHIND"],
            ["lockName", name],
          ]),
        ),
      );
      await expect(left?.unlock()).resolves.toBeUndefined();
    });

    it("releases what an inner scope left behind, and not what the outer one holds", async () => {
      const { mine, theirs } = subject.pair();
      const errors: Error[] = [];
      const listener = (error: Error) => errors.push(error);
      subject.first.locks.on("error", listener);
      onTestFinished(() => void subject.first.locks.off("error", listener));
      await mine.withLock(async (outer) => {
        await scope(async () => void (await mine.lock()));
        expect([errors.length, outer.held, await theirs.tryLock()]).toEqual([1, true, null]);
        await mine.lock(); // left behind by the body
      });
      expect(errors).toEqual([1, 2].map(() => expect.objectContaining({ code: "LOCK_LEFT_BEHIND" })));
      await (await theirs.lock({ wait: 10_000 })).unlock();
    });

    it("counts a stray of an ended scope to the scope around it", async () => {
      const { mine, theirs } = subject.pair();
      const gate = new Gate();
      const errors: Error[] = [];
      const listener = (error: Error) => errors.push(error);
      subject.first.locks.on("error", listener);
      onTestFinished(() => void subject.first.locks.off("error", listener));
      await mine.withLock(async (outer) => {
        let stray: Promise<Lease> | undefined;
        await scope(() => {
          stray = gate.passed.then(() => mine.lock());
        });
        gate.open();
        const lease = await stray;
        expect([lease?.token, lease?.held]).toEqual([outer.token, true]); // and left behind
      });
      expect(errors).toEqual([expect.objectContaining({ code: "LOCK_LEFT_BEHIND" })]);
      await (await theirs.lock({ wait: 10_000 })).unlock();
    });

    it.each(["withLock", "scope"] as const)(
      "treats code that outlives its %s as a stranger",
      async (which) => {
        const { mine, theirs } = subject.pair();
        const gate = new Gate();
        const seen: unknown[] = [];
        const runOn = async () => {
          await gate.passed;
          seen.push(mine.isHeldHere(), await mine.tryLock());
          await mine.withLock(async (own) => void seen.push(own.held, await theirs.tryLock()));
        };
        let stray: Promise<void> | undefined;
        if (which === "withLock") {
          await mine.withLock(() => {
            stray = runOn();
          });
        } else {
          await scope(async () => {
            await using _ = await mine.lock();
            stray = runOn();
          });
        }
        const lease = await theirs.lock();
        gate.open();
        await until(() => seen.length === 2);
        expect(seen).toEqual([false, null]); // neither is it held here, nor let in
        await lease.unlock();
        await stray;
        expect(seen.slice(2)).toEqual([true, null]); // what it has now, it has acquired for itself
      },
    );

    it("leaves a lease to its caller that came when the scope was over", async () => {
      const { mine, theirs } = subject.pair();
      const lease = await theirs.lock();
      let call: Promise<Lease> | undefined;
      await scope(() => {
        call = mine.lock();
      });
      await lease.unlock();
      const late = await call;
      expect([late?.held, await theirs.tryLock()]).toEqual([true, null]);
      await late?.unlock();
    });
  });
}
