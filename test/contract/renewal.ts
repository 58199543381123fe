import { describe, expect, it } from "vitest";
import { ClientClosedError } from "../../src/index.ts";
import { until } from "../support/until.ts";
import { failure, lossOf, record } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** A renewed lease tolerates a machine that stands still for two thirds of this. */
const KEPT = 3_000;

/**
 * What shows only when the watchdog has renewed a lease or a lease is over: these wait, so they do
 * it side by side.
 */
export function renewal(subject: Subject): void {
  describe.concurrent("while a lease is renewed", () => {
    it("reports the whole life of a lease", async () => {
      const { locks } = await subject.join({ leaseTime: KEPT });
      const { name, theirs } = subject.pair();
      const told = record(locks);
      const first = await theirs.lock();
      const waiter = subject.on(locks, name).lock();
      await subject.untilWaiting(name, 1);
      await first.unlock();
      const lease = await waiter;
      const token = subject.tokenOf(lease);
      await until(() => told.renew.length > 1);
      await lease.unlock();
      const lost = await subject.on(locks, name).lock();
      const { signal } = lost;
      await subject.erase(name);
      await lossOf(signal);
      const number = expect.any(Number);
      const call = told.wait[0]?.call;
      const heard = { name, kind: subject.eventKind, call, ...subject.units };
      const second = { ...heard, call: told.acquire[1]?.call };
      expect(second.call).not.toBe(call);
      expect(told.wait).toEqual([{ ...heard, heldBy: "unknown", waitedFor: number }]);
      expect(told.acquire).toEqual([
        { ...heard, token, waitedFor: number, passed: false, kept: false },
        {
          ...second,
          token: subject.tokenOf(lost),
          waitedFor: number,
          passed: expect.any(Boolean),
          kept: false,
        },
      ]);
      expect(told.release).toEqual([{ ...heard, token, heldFor: number }]);
      expect(told.renew[0]).toEqual({ ...heard, token, remaining: number });
      expect(told.lost).toEqual([
        {
          ...second,
          token: subject.tokenOf(lost),
          firstToken: subject.tokens ? number : null,
          heldFor: number,
          error: signal.reason,
        },
      ]);
      expect(told.lost[0]?.heldFor).toBeGreaterThan(0);
      expect(told.giveup).toEqual([]);
      expect(told.error).toEqual([]);
      await failure(lost.unlock());
      expect(told.lost.length).toBe(1);
    });

    it("a throwing listener stops neither the watchdog nor wake-ups, and is reported", async () => {
      const { locks } = await subject.join({ leaseTime: KEPT });
      const { name, mine } = subject.pair();
      const told = { renew: 0, errors: [] as string[] };
      locks.on("renew", () => void told.renew++);
      for (const event of ["acquire", "wait", "giveup", "release", "renew", "lost"] as const)
        locks.on(event, () => {
          throw new Error("theirs");
        });
      locks.on("error", (error) => void told.errors.push(error.message));
      const lock = subject.on(locks, name);
      const first = await mine.lock();
      const waiters = [lock.lock(), lock.lock()];
      await until(async () => (await subject.waiting(name)) > 0);
      await first.unlock();
      expect(await lock.tryLock()).toBe(null);
      const lease = (await Promise.race(waiters)) as Awaited<(typeof waiters)[0]>;
      await until(() => told.renew > 1);
      expect(lease.held).toBe(true);
      await lease.unlock();
      for (const waiter of waiters) await (await waiter).unlock();
      const lost = await lock.lock();
      await mine.forceUnlock();
      await lossOf(lost.signal);
      await failure(lost.unlock());
      for (const event of ["acquire", "wait", "giveup", "release", "renew", "lost"])
        expect(told.errors).toContain(`A listener for the event '${event}' of '${name}' failed: theirs.`);
    });

    it("warns about a caller that waits for its own client longer than a lease", async ({
      onTestFinished,
    }) => {
      const { locks } = await subject.join({ leaseTime: KEPT / 2 });
      const told = record(locks);
      const lock = subject.on(locks, subject.name());
      const seen: (Error & { code?: string })[] = [];
      const listener = (warning: Error) => void (warning.message.includes(lock.name) && seen.push(warning));
      process.on("warning", listener);
      onTestFinished(() => void process.off("warning", listener));
      let [lease, waiter] = [await lock.lock(), lock.lock()];
      const news = () => (seen.length > 0 ? "warned" : lease.signal.aborted && "lost");
      while ((await until(news)) === "lost") {
        // The machine stood still for a lease: the caller that waited holds it now, and another one waits.
        lease = await waiter;
        waiter = lock.lock();
      }
      expect(seen.map(({ code }) => code)).toEqual(["LOCK_SELF_WAIT"]);
      expect(told.wait.slice(-2).map(({ heldBy }) => heldBy)).toEqual(["unknown", "this client"]);
      await lease.unlock();
      await (await waiter).unlock();
    });

    it("rejects callers that wait for a holder of the same client, and lets the holder finish", async () => {
      const { locks } = await subject.join({ leaseTime: KEPT });
      const { name, theirs } = subject.pair();
      const lock = subject.on(locks, name);
      const lease = await lock.lock();
      const waiter = failure(lock.lock());
      const closed = locks.close({ grace: 60_000 });
      expect(await waiter).toBeInstanceOf(ClientClosedError);
      const start = performance.now();
      await until(() => performance.now() - start > 1.1 * KEPT); // past a lease: the watchdog still works
      expect([lease.held, await theirs.tryLock()]).toEqual([true, null]);
      await lease.unlock();
      await closed;
      expect(performance.now() - start).toBeLessThan(30_000); // not the whole grace
      await (await theirs.lock({ wait: 10_000 })).unlock();
    });

    it("forceUnlock frees the lock, and the holder is notified at its next renewal", async () => {
      // Its renewal comes after 2 s, long after what follows: a busy machine may take a second for that.
      const party = await subject.join({ leaseTime: 6_000 });
      const { name, theirs } = subject.pair();
      const lease = await subject.of(party, name).lock({ wait: 0 }); // it is not subscribed yet
      // Together: a renewal between them would find it gone. To several masters they come one by one.
      const [forced, next] = await Promise.all([theirs.forceUnlock(), theirs.lock({ wait: 10_000 })]);
      expect(forced).toBe(true);
      // A client that keeps its locks listens as soon as it can, and may hear of it.
      const reasons = [
        subject.taken,
        ...(subject.lingers ? ["revoked"] : []),
        ...(subject.isQuorum ? ["gone"] : []),
      ];
      expect(reasons).toContain(await lossOf(lease.signal));
      await next.unlock();
      expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST" });
    });

    it("forceUnlock notifies a subscribed holder at once, if the protocol can", async () => {
      // Where a message tells it, no renewal is to be before that.
      const party = await subject.join({ leaseTime: subject.queues ? 30_000 : 3_000 });
      const { name, theirs } = subject.pair();
      const first = await theirs.lock();
      const waiter = subject.of(party, name).lock(); // has a subscriber now
      await subject.untilWaiting(name, 1);
      await first.unlock();
      const lease = await waiter;
      // Its claim would be answered "gone", so it is to be over.
      if (subject.queues) await until(() => lease.remaining > 10_000);
      const { signal } = lease;
      const label = "alice {ops} 100%, ticket 4711 é";
      expect(await theirs.forceUnlock({ label })).toBe(true);
      expect(await lossOf(signal)).toBe(subject.queues ? "revoked" : "gone");
      expect(signal.reason).toMatchObject({ by: subject.queues ? label : null });
      if (subject.queues)
        expect(String(signal.reason)).toContain(`forceUnlock() ended it, called by '${label}';`);
      expect(lease.held).toBe(false);
      expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST" });
      await (await theirs.lock({ wait: 10_000 })).unlock();
    });
  });
}
