import { describe, expect, it } from "vitest";
import type { Lease } from "../../src/index.ts";
import { Gauges } from "../support/gauges.ts";
import { until } from "../support/until.ts";
import { failure, Gate, recordOf, tried } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** What becomes of leases, and of code, that outlive their scope. */
export function leasesLeftBehind(subject: Subject): void {
  const scope = <T>(body: () => T | PromiseLike<T>) => subject.first.locks.scope(body);

  describe("the end of a scope", () => {
    it("ends leases that are left in it: the signal, `held`, unlock(), `lost` and an error report it", async () => {
      const { name, mine, theirs } = subject.pair();
      const told = recordOf(subject.first.locks, [name]);
      const { lease, signal } = await scope(async () => {
        const lease = await mine.lock();
        return { lease, signal: lease.signal };
      });
      const loss = await failure(lease.unlock());
      expect(loss).toMatchObject({ code: "LOCK_LOST", reason: "scope", lockName: name });
      expect([signal.aborted, signal.reason, lease.signal, lease.held]).toEqual([true, loss, signal, false]);
      expect(lease.remaining).toBe(0);
      expect(() => lease.assertHeld()).toThrow(loss as Error);
      expect(await failure(lease.extend(1_000))).toBe(loss);
      await lease.unlock(); // its loss was told once
      expect(told.error).toMatchObject([{ code: "LOCK_LEFT_BEHIND", lockName: name }]);
      const token = subject.tokenOf(lease);
      expect(told.lost).toMatchObject([
        { token, firstToken: token, error: loss, call: told.acquire[0]?.call },
      ]);
      expect([told.release, "remains" in (told.lost[0] ?? {})]).toEqual([[], false]);
      await (await theirs.lock({ wait: 10_000 })).unlock();
    });

    it("ends what a body in it left, also if that call got its lock after the body ended", async () => {
      const [first, second] = [subject.pair(), subject.pair()];
      const told = recordOf(subject.first.locks, [first.name, second.name]);
      const foreign = await second.theirs.lock();
      const { early, late } = await scope(async () => {
        const { early, pending } = await subject.of(subject.first, subject.name()).withLock(async () => {
          const early = await first.mine.lock();
          return { early, pending: [second.mine.lock()] };
        });
        await foreign.unlock();
        const [late] = await Promise.all(pending);
        expect([early.held, late?.held]).toEqual([true, true]);
        return { early, late };
      });
      for (const lease of [early, late as Lease])
        expect(await failure(lease.unlock())).toMatchObject({ reason: "scope" });
      expect(told.error.length).toBe(2);
      for (const { theirs } of [first, second]) await (await theirs.lock({ wait: 10_000 })).unlock();
    });

    it("ends no lease that locks.outside() acquired", async () => {
      const { name, mine, theirs } = subject.pair();
      const told = recordOf(subject.first.locks, [name]);
      const lease = await scope(() => subject.first.locks.outside(() => mine.lock()));
      expect([lease.held, lease.signal.aborted, await tried(theirs)]).toEqual([true, false, null]);
      await lease.unlock();
      expect([told.lost, told.error, told.release.length]).toEqual([[], [], 1]);
    });

    it("leaves a lease that arrives after the scope ended to its caller", async () => {
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

  describe("the end of a body", () => {
    it("ends no lease that was acquired in it; a lease left over is reported one lease time later", async () => {
      // Longer than a busy machine stands still.
      const leaseTime = 3_000;
      const { locks } = await subject.join({ leaseTime });
      const [left, unlocked] = [subject.pair(), subject.pair()];
      const told = recordOf(locks, [left.name, unlocked.name]);
      const ends: number[] = [];
      const leases = await subject.on(locks, subject.name()).withLock(async () => {
        const both = await Promise.all([left, unlocked].map(({ name }) => subject.on(locks, name).lock()));
        ends.push(performance.now());
        return both;
      });
      await leases[1]?.unlock();
      const [lease] = leases;
      await until(() => told.error.length > 0, { what: "the report" });
      // Node.js may ring a timer that much too early.
      expect(performance.now() - (ends[0] ?? 0)).toBeGreaterThanOrEqual(leaseTime - 2);
      expect(told.error).toMatchObject([{ code: "LOCK_LEFT_BEHIND", lockName: left.name }]);
      expect(told.error[0]?.message).toMatch(/is still held, and stays so until (unlock|release)\(\)/);
      expect([lease?.held, lease?.signal.aborted, await tried(left.theirs)]).toEqual([true, false, null]);
      await lease?.unlock();
      expect([told.lost, told.release.length]).toEqual([[], 2]);
    });
  });

  describe("after a scope", () => {
    it("what an inner scope has entered is ended, and the others keep the lock", async () => {
      const { locks } = await subject.join();
      const gauges = new Gauges(locks);
      const { name, theirs } = subject.pair();
      const mine = subject.on(locks, name);
      const told = recordOf(locks, [name]);
      await mine.withLock(async (outer) => {
        const own = await mine.lock();
        const inner = await locks.scope(async () => {
          const inner = await mine.lock();
          expect([inner.signal.aborted, inner.token]).toEqual([false, outer.token]);
          return inner;
        });
        const loss = inner.signal.reason;
        expect([inner.held, await failure(inner.unlock())]).toEqual([false, loss]);
        expect(loss).toMatchObject({ code: "LOCK_LOST", reason: "scope" });
        for (const { held, signal } of [outer, own]) expect([held, signal.aborted]).toEqual([true, false]);
        // The call that has the lock goes on.
        expect(told.lost).toMatchObject([{ error: loss, remains: true, token: subject.tokenOf(outer) }]);
        expect([told.error.length, told.release.length, await tried(theirs)]).toEqual([1, 0, null]);
        await own.unlock();
      });
      expect(told.release.length).toBe(1);
      expect([gauges.holders, gauges.surprises]).toEqual([0, []]);
      await (await theirs.lock({ wait: 10_000 })).unlock();
    });

    it("a hold with two leases in it ends with the second one", async () => {
      const { name, mine, theirs } = subject.pair();
      const told = recordOf(subject.first.locks, [name]);
      const leases = await scope(async () => [await mine.lock(), await mine.lock()]);
      const losses = await Promise.all(leases.map((lease) => failure(lease.unlock())));
      expect(losses).toMatchObject([{ reason: "scope" }, { reason: "scope" }]);
      expect(told.lost.map(({ error, remains = false }) => [error, remains])).toEqual([
        [losses[0], true],
        [losses[1], false],
      ]);
      expect(told.error).toMatchObject([1, 2].map(() => ({ code: "LOCK_LEFT_BEHIND", lockName: name })));
      await (await theirs.lock({ wait: 10_000 })).unlock();
    });

    it("a body that borrowed from it and goes on keeps the lock to its own end", async () => {
      const { name, mine, theirs } = subject.pair();
      const told = recordOf(subject.first.locks, [name]);
      const gate = new Gate();
      let body: Promise<void> | undefined;
      const lease = await scope(async () => {
        const lease = await mine.lock();
        const inside = new Gate();
        body = mine.withLock(async ({ signal }) => {
          inside.open();
          await gate.passed;
          expect(signal.aborted).toBe(false);
        });
        await inside.passed;
        return lease;
      });
      expect([lease.held, await tried(theirs)]).toEqual([false, null]);
      expect(await failure(lease.unlock())).toMatchObject({ reason: "scope" });
      gate.open();
      await body;
      expect(told.release.length).toBe(1);
      await (await theirs.lock({ wait: 10_000 })).unlock();
    });

    it("a stray lease of an ended scope belongs to the scope around it", async () => {
      const { mine, theirs } = subject.pair();
      const gate = new Gate();
      const stray = await mine.withLock(async (outer) => {
        let stray: Promise<Lease> | undefined;
        await scope(() => {
          stray = gate.passed.then(() => mine.lock());
        });
        gate.open();
        const lease = await stray;
        expect([lease?.token, lease?.held]).toEqual([outer.token, true]);
        return lease;
      });
      // The body around it takes nothing.
      expect([stray?.held, await tried(theirs)]).toEqual([true, null]);
      await stray?.unlock();
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
  });
}
