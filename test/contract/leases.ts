import { describe, expect, it, vi } from "vitest";
import { type Lease, LockError, LockLostError } from "../../src/index.ts";
import type { Party } from "../support/fixture.ts";
import { until } from "../support/until.ts";
import { failure, lossOf, timersRing } from "./observe.ts";
import type { Subject } from "./subject.ts";

const LEASE = 300;
/** One that is to be kept: its renewals bear that the machine stands still for 300 ms. */
const KEPT = 450;

/** When a lease ends, and what keeps it alive. */
export function leases(subject: Subject): void {
  /** For so many leases, as its renewals tell: each comes after a third of one. */
  async function kept({ locks }: Party, { name }: Lease, leases: number): Promise<void> {
    let renewals = 0;
    const count = (renewed: { name: string }) => {
      if (renewed.name === name) renewals++;
    };
    locks.on("renew", count);
    await until(() => renewals > 3 * leases, { what: "renewals" });
    locks.off("renew", count);
  }

  describe("leases", () => {
    it("an explicit lease ends by itself although the process lives", async () => {
      const { mine, theirs } = subject.pair();
      const asked = performance.now();
      const lease = await mine.lock({ lease: LEASE });
      const { signal } = lease;
      expect(await theirs.tryLock()).toBe(null);
      expect(await lossOf(signal)).toBe("expired");
      const ended = performance.now() - asked;
      expect(ended).toBeGreaterThan(LEASE * 0.9);
      expect(ended).toBeLessThan(3_000); // the lease of a client is 30 s
      expect([lease.held, lease.remaining()]).toEqual([false, 0]);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
      const next = await theirs.lock({ wait: 5_000 });
      await expect(lease.unlock()).rejects.toMatchObject({ reason: "expired", lockName: mine.name });
      await expect(lease.unlock()).resolves.toBeUndefined(); // told once
      expect(next.held).toBe(true);
      await next.unlock();
    });

    it("is over before Redis lets another in", async () => {
      const { mine, theirs } = subject.pair();
      const lease = await mine.lock({ lease: LEASE });
      const { signal } = lease;
      const next = await until(() => theirs.tryLock());
      expect(lease.held).toBe(false);
      await timersRing();
      expect(signal.aborted).toBe(true);
      await next.unlock();
    });

    it("is over before Redis lets another in, also when no renewal is answered", async () => {
      const party = await subject.join({ leaseTime: LEASE });
      party.locks.on("error", () => {}); // the failed renewals
      const { name, theirs } = subject.pair();
      const lease = await subject.of(party, name).lock();
      const { signal } = lease;
      for (const redis of subject.group(party.redis))
        vi.spyOn(redis, "evalsha").mockReturnValue(new Promise(() => {}));
      const next = await until(() => theirs.tryLock());
      expect(lease.held).toBe(false);
      await timersRing();
      expect(signal.aborted).toBe(true);
      expect(await lossOf(signal)).toBe("expired");
      await next.unlock();
    });

    it("knows in its first statement that time has passed, before any timer could tell", async () => {
      const { mine } = subject.pair();
      const lease = await mine.lock({ lease: 60 });
      const end = performance.now() + 61;
      while (performance.now() < end); // the event loop is busy
      expect(lease.held).toBe(false);
      expect(() => lease.assertHeld()).toThrow(
        expect.objectContaining({ code: "LOCK_LOST", reason: "expired" }),
      );
    });

    it("the watchdog keeps a lease without end for more than four leases", async () => {
      const party = await subject.join({ leaseTime: KEPT });
      const { name, theirs } = subject.pair();
      const lease = await subject.of(party, name).lock();
      const start = performance.now();
      expect(lease.remaining()).toBeLessThanOrEqual(KEPT);
      let smallest = KEPT;
      await until(async () => {
        expect(await theirs.tryLock()).toBe(null);
        smallest = Math.min(smallest, lease.remaining());
        return performance.now() - start > 4.5 * KEPT;
      });
      expect(smallest).toBeGreaterThan(0);
      await lease.unlock();
    });

    it("the watchdog keeps a lease that was handed over", async () => {
      const party = await subject.join({ leaseTime: KEPT });
      const { name, mine, theirs } = subject.pair();
      const first = await mine.lock();
      const waiter = subject.of(party, name).lock();
      await subject.untilWaiting(name, 1);
      await first.unlock();
      const lease = await waiter;
      await kept(party, lease, 2);
      expect([lease.held, await theirs.tryLock()]).toEqual([true, null]);
      await lease.unlock();
    });

    it("`watchdog: true` renews an explicit lease, `watchdog: false` lets the default one end", async () => {
      const party = await subject.join({ leaseTime: KEPT });
      const fresh = () => subject.of(party, subject.name());
      const renewed = await fresh().lock({ lease: KEPT, watchdog: true });
      const left = await fresh().lock({ watchdog: false });
      expect(await lossOf(left.signal)).toBe("expired");
      await kept(party, renewed, 1);
      expect(renewed.held).toBe(true);
      await renewed.unlock();
    });

    it("maxHold ends a lease that the watchdog would keep", async () => {
      const party = await subject.join({ leaseTime: KEPT });
      const { name, theirs } = subject.pair();
      const asked = performance.now();
      const lease = await subject.of(party, name).lock({ maxHold: 700 });
      expect(await lossOf(lease.signal)).toBe("expired");
      const ended = performance.now() - asked;
      expect(ended).toBeGreaterThan(690);
      expect(ended).toBeLessThan(3_000);
      await (await theirs.lock({ wait: 5_000 })).unlock();
    });

    it("is not that of another caller that asked for a much longer one and has left", async () => {
      const { mine } = subject.pair();
      await (await mine.lock()).unlock();
      const leaving = new AbortController();
      const first = mine.lock({ lease: 600_000, signal: leaving.signal }).catch(() => {});
      const second = mine.lock({ lease: 1_000 });
      leaving.abort();
      await first;
      const lease = await second;
      expect((await mine.inspect()).remaining).toBeLessThanOrEqual(3_000);
      await lease.unlock();
    });

    it("an unlocked lease is not held, and its signal does not abort", async () => {
      const { mine } = subject.pair();
      const lease = await mine.lock();
      expect(lease.remaining()).toBeGreaterThan(29_000);
      expect(() => lease.assertHeld()).not.toThrow();
      const { signal } = lease;
      await lease.unlock();
      expect([lease.held, lease.remaining(), signal.aborted]).toEqual([false, 0, false]);
      const error = await failure(Promise.resolve().then(() => lease.assertHeld()));
      expect(error).toBeInstanceOf(LockError);
      expect(error).toMatchObject({ code: "LOCK_RELEASED", lockName: mine.name });
    });
  });
}
