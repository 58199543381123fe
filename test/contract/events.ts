import { describe, expect, it } from "vitest";
import { Gauges } from "../support/gauges.ts";
import { until } from "../support/until.ts";
import { failure, record, warnings } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** The events of a client, and that no listener can do harm. */
export function events(subject: Subject): void {
  describe("events", () => {
    it("give the reason why a call ended without the lock", async () => {
      const { locks } = await subject.join();
      const told = record(locks);
      const { name, theirs } = subject.pair();
      const lock = subject.on(locks, name);
      const lease = await theirs.lock();
      expect(await lock.tryLock()).toBe(null);
      expect(await lock.tryLock(60)).toBe(null);
      await failure(lock.lock({ wait: 60 }));
      const said = told.wait.length; // of those that had no time to wait, maybe nothing
      const patience = new AbortController();
      const impatient = failure(lock.lock({ signal: patience.signal }));
      await until(() => told.wait.length > said);
      patience.abort(new Error("no more"));
      await impatient;
      await failure(lock.lock({ signal: patience.signal }));
      const refused = failure(lock.withLock(() => {}));
      await until(() => told.wait.length > said + 1);
      await locks.close();
      await refused;
      await failure(lock.tryLock());
      await lease.unlock();
      expect(told.giveup.map(({ why }) => why)).toEqual([
        "busy",
        "timeout",
        "timeout",
        "aborted",
        "aborted",
        "closed",
        "closed",
      ]);
      for (const one of told.giveup)
        expect(one).toEqual({
          name,
          kind: subject.eventKind,
          call: expect.any(Number),
          waitedFor: expect.any(Number),
          why: one.why,
          ...subject.units,
        });
      // Each call once, in the order in which they came; the first waited for nothing.
      const calls = told.giveup.map(({ call }) => call);
      expect(calls).toEqual([...new Set(calls)].sort((a, b) => a - b));
      expect(told.wait.slice(said).map(({ call }) => call)).toEqual([calls[3], calls[5]]);
      expect(told.giveup[1]?.waitedFor).toBeGreaterThanOrEqual(50);
      expect([told.acquire, told.release, told.lost]).toEqual([[], [], []]);
    });

    it("drive gauges of waiters and holders that return to zero", async () => {
      const { locks } = await subject.join({ leaseTime: 20_000 });
      const gauges = new Gauges(locks);
      const { name, mine } = subject.pair();
      const lock = subject.on(locks, name);
      const lease = await mine.lock();
      const leaving = new AbortController();
      const hasty = failure(lock.lock({ signal: leaving.signal }));
      const patient = [lock.lock(), lock.lock(), lock.lock()];
      await until(() => gauges.waiters === 4);
      leaving.abort("enough");
      expect(await hasty).toBe("enough");
      expect([gauges.waiters, gauges.holders]).toEqual([3, 0]);
      await lease.unlock();
      for (const waiter of patient) {
        const next = await waiter;
        expect(gauges.holders).toBe(1);
        await next.unlock();
      }
      // A caller that borrows it, or enters it again, is no further holder.
      await lock.withLock(() =>
        lock.withLock(async () => {
          await using again = await lock.lock();
          expect(again.held).toBe(true);
          expect([gauges.waiters, gauges.holders]).toEqual([0, 1]);
        }),
      );
      const lost = await lock.lock();
      await subject.erase(name);
      await failure(lost.extend(5_000));
      await lost.unlock();
      const late = await lock.lock(subject.proving);
      await subject.erase(name);
      await failure(late.unlock()); // only the release finds out: "release", and "lost" after it
      expect([gauges.waiters, gauges.holders]).toEqual([0, 0]);
      expect(gauges.surprises).toEqual([]);
    });

    it("are delivered once by `once`, and no more after `off`", async () => {
      const { locks } = await subject.join();
      const lock = subject.on(locks, subject.name());
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

    it("turn an unhandled error into one process warning for its code", async () => {
      const { locks } = await subject.join();
      const seen = warnings();
      const lock = subject.on(locks, subject.name());
      for (let i = 0; i < 3; i++) await locks.scope(() => lock.lock().then(() => {}));
      {
        using lease = await lock.lock(subject.proving);
        await lock.forceUnlock();
        void lease;
      }
      await until(() => seen.some(({ code }) => code === "LOCK_LOST"));
      expect(seen.map(({ code }) => code)).toEqual(["LOCK_LEFT_BEHIND", "LOCK_LOST"]);
      expect(seen[0]?.message).toContain(lock.name);
    });

    it("survive an error listener that throws", async () => {
      const { locks } = await subject.join();
      const seen = warnings();
      locks.on("error", () => {
        throw new Error("theirs");
      });
      const lock = subject.on(locks, subject.name());
      await locks.scope(() => lock.lock().then(() => {}));
      await until(() => seen.length > 0);
      expect(seen.map(({ message }) => message)).toEqual([
        `A listener for the event 'error' of '${lock.name}' failed: theirs.`,
      ]);
      await (await lock.lock({ wait: 10_000 })).unlock();
    });
  });
}
