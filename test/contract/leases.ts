import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { GRANT_WINDOW } from "../../src/defaults.ts";
import { type Lock, LockError, LockLostError } from "../../src/index.ts";
import { onScript } from "../support/scripts-sent.ts";
import { STAY_WINDOW } from "../support/stays.ts";
import { until } from "../support/until.ts";
import { failure, leased, lossOf, timersRing, tried } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** One that ends, and may do so at any moment. */
const LEASE = 300;
/** One that is to be held for a while: longer than a busy machine stands still. */
const HELD = 2_000;
/** One that is to be kept: its renewals bear that the machine stands still for 2 s. */
const KEPT = 3_000;

/** When a lease ends, and what keeps it alive. */
export function leases(subject: Subject): void {
  describe.concurrent("leases", () => {
    it("an explicit lease ends by itself although the process lives", async () => {
      const { mine, theirs } = subject.pair();
      const asked = performance.now();
      const lease = await mine.lock({ lease: HELD });
      const { signal } = lease;
      expect(await tried(theirs)).toBe(null);
      expect(await lossOf(signal)).toBe("expired");
      const ended = performance.now() - asked;
      expect(ended).toBeGreaterThan(HELD * 0.9);
      expect(ended).toBeLessThan(10_000); // the lease of a client is 30 s
      expect([lease.held, lease.remaining]).toEqual([false, 0]);
      const next = await theirs.lock({ wait: 10_000 });
      await expect(lease.unlock()).rejects.toMatchObject({ reason: "expired", lockName: mine.name });
      await expect(lease.unlock()).resolves.toBeUndefined(); // told once
      expect(() => lease.assertHeld()).toThrow(LockLostError);
      expect(next.held).toBe(true);
      await next.unlock();
    });

    it("is over before Redis admits another holder", async () => {
      const { mine, theirs } = subject.pair();
      const lease = await leased(() => mine.lock({ lease: LEASE }));
      const { signal } = lease;
      const next = await until(() => tried(theirs));
      expect(lease.held).toBe(false);
      await timersRing();
      expect(signal.aborted).toBe(true);
      await next.unlock();
    });

    it("is over before Redis admits another holder, also when no renewal is answered", async ({
      onTestFinished,
    }) => {
      const party = await subject.join({ leaseTime: LEASE });
      party.locks.on("error", () => {}); // the failed renewals
      const { name, theirs } = subject.pair();
      const lease = await leased(() => subject.of(party, name).lock());
      const { signal } = lease;
      for (const redis of subject.group(party.redis)) onScript(redis, () => {}, onTestFinished);
      const next = await until(() => tried(theirs));
      expect(lease.held).toBe(false);
      await timersRing();
      expect(signal.aborted).toBe(true);
      expect(await lossOf(signal)).toBe("expired");
      await next.unlock();
    });

    it("is known to be over in the first statement after a pause, before any timer fires", async () => {
      const { mine } = subject.pair();
      const lease = await leased(() => mine.lock({ lease: 200 }));
      const end = performance.now() + 201;
      while (performance.now() < end); // the event loop is busy
      expect([lease.held, lease.remaining]).toEqual([false, 0]);
      expect(() => lease.signal.throwIfAborted()).toThrow(/ran out/);
      expect(() => lease.assertHeld()).toThrow(
        expect.objectContaining({ code: "LOCK_LOST", reason: "expired" }),
      );
    });

    it("the watchdog renews a lease: acquired, handed over, or explicit with `watchdog: true`", async () => {
      const party = await subject.join({ leaseTime: KEPT });
      const pairs = [subject.pair(), subject.pair(), subject.pair()] as const;
      const [taken, handed, explicit] = pairs.map(({ name }) => subject.of(party, name)) as [
        Lock,
        Lock,
        Lock,
      ];
      const first = await pairs[1].theirs.lock();
      const waiter = handed.lock();
      await subject.untilWaiting(handed.name, 1);
      await first.unlock();
      const leases = [await waiter, await taken.lock(), await explicit.lock({ lease: KEPT, watchdog: true })];
      const left = await subject.of(party, subject.name()).lock({ watchdog: false });
      const start = performance.now();
      for (const lease of leases) expect(lease.remaining).toBeLessThanOrEqual(KEPT);
      const isOver = async () => {
        for (const { theirs } of pairs) expect(await tried(theirs)).toBe(null);
        for (const lease of leases) expect(lease.remaining).toBeGreaterThan(0);
        await delay(KEPT / 20);
        return performance.now() - start > 1.2 * KEPT; // the first lease would be over
      };
      await until(isOver, { timeout: 15_000 });
      expect(await lossOf(left.signal)).toBe("expired");
      for (const lease of leases) await lease.unlock();
    });

    it.runIf(subject.queues && !subject.isCounted)(
      "a granted lock lives in Redis for the grant window, until its new holder has claimed it",
      async ({ onTestFinished }) => {
        const party = await subject.join();
        party.locks.on("error", () => {}); // the claim that gets no answer
        const { name, mine } = subject.pair();
        const lease = await mine.lock();
        const waiter = subject.of(party, name).lock();
        await subject.untilWaiting(name, 1);
        await party.redis.ping(); // its client has read that it waits
        const restore = onScript(party.redis, () => {}, onTestFinished);
        await lease.unlock();
        const granted = await waiter;
        const left = await subject.first.redis.pttl(subject.key(name));
        restore();
        expect([left > 0, left <= GRANT_WINDOW]).toEqual([true, true]);
        await granted.unlock();
      },
    );

    it("maxHold ends a lease that the watchdog would renew", async () => {
      const party = await subject.join({ leaseTime: KEPT });
      const { name, theirs } = subject.pair();
      const asked = performance.now();
      const lease = await subject.of(party, name).lock({ maxHold: KEPT + 500 });
      expect(await lossOf(lease.signal)).toBe("expired");
      const ended = performance.now() - asked;
      expect(ended).toBeGreaterThan(KEPT + 490);
      expect(ended).toBeLessThan(10_000);
      await (await theirs.lock({ wait: 10_000 })).unlock();
    });

    it("is not that of another caller that asked for a much longer one and has left", async () => {
      const { mine } = subject.pair();
      await (await mine.lock()).unlock();
      const leaving = new AbortController();
      const first = mine.lock({ lease: 600_000, signal: leaving.signal }).catch(() => {});
      const second = mine.lock({ lease: 10_000 });
      leaving.abort();
      await first;
      const lease = await second;
      expect((await mine.inspect()).remaining).toBeLessThanOrEqual(10_001);
      await lease.unlock();
    });

    it("an unlocked lease is not held, and its signal does not abort", async () => {
      const { mine } = subject.pair();
      const lease = await mine.lock();
      // One that may be kept is claimed when its holder stays.
      expect(lease.remaining).toBeGreaterThan(subject.lingers ? STAY_WINDOW / 2 : 20_000);
      expect(() => lease.assertHeld()).not.toThrow();
      const { signal } = lease;
      await lease.unlock();
      expect([lease.held, lease.remaining, signal.aborted]).toEqual([false, 0, false]);
      const error = await failure(Promise.resolve().then(() => lease.assertHeld()));
      expect(error).toBeInstanceOf(LockError);
      expect(error).toMatchObject({ code: "LOCK_RELEASED", lockName: mine.name });
    });
  });
}
