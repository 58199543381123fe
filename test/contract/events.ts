import { describe, expect, it, onTestFinished } from "vitest";
import type { LockClient, LockEvents } from "../../src/index.ts";
import { until } from "../support/until.ts";
import { failure, lossOf } from "./observe.ts";
import type { Subject } from "./subject.ts";

const EVENTS = ["acquire", "wait", "release", "renew", "lost", "error"] as const;

type Told = { [K in (typeof EVENTS)[number]]: Parameters<LockEvents[K]>[0][] };

function record(locks: LockClient): Told {
  const told: Told = { acquire: [], wait: [], release: [], renew: [], lost: [], error: [] };
  for (const event of EVENTS)
    locks.on(event, (detail: unknown) => void (told[event] as unknown[]).push(detail));
  return told;
}

/** The warnings of this package from now to the end of the test. */
function warnings(): (Error & { code?: string })[] {
  const seen: (Error & { code?: string })[] = [];
  const listener = (warning: Error) => {
    if (warning.name === "HoldfastWarning") seen.push(warning);
  };
  process.on("warning", listener);
  onTestFinished(() => void process.off("warning", listener));
  return seen;
}

/** What a client tells, and that nobody who listens can do harm. */
export function events(subject: Subject): void {
  describe("events", () => {
    it("tells of the whole life of a lease", async () => {
      const { locks } = await subject.join({ leaseTime: 600 });
      const { name, mine } = subject.pair();
      const told = record(locks);
      const first = await mine.lock();
      const waiter = locks[subject.kind](name).lock();
      await subject.untilWaiting(name, 1);
      await first.unlock();
      const lease = await waiter;
      const { token } = lease;
      await until(() => told.renew.length > 1);
      await lease.unlock();
      const lost = await locks[subject.kind](name).lock();
      const { signal } = lost;
      await subject.erase(name);
      await lossOf(signal);
      expect(told.wait).toEqual([{ name, holder: "unknown", waited: expect.any(Number) }]);
      expect(told.acquire).toEqual([
        { name, token, waited: expect.any(Number) },
        { name, token: lost.token, waited: expect.any(Number) },
      ]);
      expect(told.release).toEqual([{ name, token, held: expect.any(Number) }]);
      expect(told.renew[0]).toEqual({ name, token, remaining: expect.any(Number) });
      expect(told.lost).toEqual([{ name, token: lost.token, error: signal.reason }]);
      expect(told.error).toEqual([]);
      await failure(lost.unlock());
      expect(told.lost.length).toBe(1);
    });

    it("once hears once, off hears nothing", async () => {
      const { locks } = await subject.join();
      const lock = locks[subject.kind](subject.name());
      let once = 0;
      let off = 0;
      const unwanted = () => off++;
      locks
        .once("acquire", () => once++)
        .on("acquire", unwanted)
        .off("acquire", unwanted);
      for (let i = 0; i < 2; i++) await lock.withLock(() => {});
      expect([once, off]).toEqual([1, 0]);
    });

    it("a throwing listener stops neither watchdog nor waking, and is reported", async () => {
      const { locks } = await subject.join({ leaseTime: 600 });
      const { name, mine } = subject.pair();
      const told = { renew: 0, errors: [] as string[] };
      locks.on("renew", () => void told.renew++);
      for (const event of ["acquire", "wait", "release", "renew", "lost"] as const)
        locks.on(event, () => {
          throw new Error(`the ${event} listener failed`);
        });
      locks.on("error", (error) => void told.errors.push(error.message));
      const lock = locks[subject.kind](name);
      const first = await mine.lock();
      const waiters = [lock.lock(), lock.lock()];
      await until(async () => (await subject.waiting(name)) > 0);
      await first.unlock();
      const lease = (await Promise.race(waiters)) as Awaited<(typeof waiters)[0]>;
      await until(() => told.renew > 3);
      expect(lease.held).toBe(true);
      await lease.unlock();
      for (const waiter of waiters) await (await waiter).unlock();
      const lost = await lock.lock();
      await mine.forceUnlock();
      await lossOf(lost.signal);
      await failure(lost.unlock());
      for (const event of ["acquire", "wait", "release", "renew", "lost"])
        expect(told.errors).toContain(`the ${event} listener failed`);
    });

    it("an error that nobody hears becomes one process warning for its code", async () => {
      const { locks } = await subject.join();
      const seen = warnings();
      const lock = locks[subject.kind](subject.name());
      for (let i = 0; i < 3; i++) await locks.scope(() => lock.lock().then(() => {}));
      {
        using lease = await lock.lock();
        await lock.forceUnlock();
        void lease;
      }
      await until(() => seen.some(({ code }) => code === "LOCK_LOST"));
      expect(seen.map(({ code }) => code)).toEqual(["LOCK_LEFT_BEHIND", "LOCK_LOST"]);
      expect(seen[0]?.message).toContain(lock.name);
    });

    it("an error listener that throws does no harm either", async () => {
      const { locks } = await subject.join();
      const seen = warnings();
      locks.on("error", () => {
        throw new Error("the error listener failed");
      });
      const lock = locks[subject.kind](subject.name());
      await locks.scope(() => lock.lock().then(() => {}));
      await until(() => seen.length > 0);
      expect(seen.map(({ message }) => message)).toEqual(["the error listener failed"]);
      await (await lock.lock({ wait: 1_000 })).unlock();
    });

    it("warns of a caller that waits for its own client longer than a lease", async () => {
      const { locks } = await subject.join({ leaseTime: 600 });
      const seen = warnings();
      const told = record(locks);
      const lock = locks[subject.kind](subject.name());
      const lease = await lock.lock();
      const waiter = lock.lock();
      await until(() => seen.length > 0);
      expect(seen.map(({ code }) => code)).toEqual(["LOCK_SELF_WAIT"]);
      expect(told.wait.map(({ holder }) => holder)).toEqual(["unknown", "this client"]);
      await lease.unlock();
      await (await waiter).unlock();
    });
  });
}
