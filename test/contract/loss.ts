import { describe, expect, it } from "vitest";
import { type Lock, LockLostError } from "../../src/index.ts";
import type { Party } from "../support/fixture.ts";
import { failure, leased, lossOf, tried } from "./observe.ts";
import type { Subject } from "./subject.ts";

/**
 * It is renewed after a third of it. Longer than a busy machine stands still: it must not run out
 * before that shows the loss.
 */
const LEASE = 3_000;

/** A holder that has lost its lock is notified, whichever way it ends its lease. */
export function loss(subject: Subject): void {
  /** A holder whose watchdog soon sees what the others do to its lock. */
  async function holder(): Promise<{ party: Party; name: string; mine: Lock; theirs: Lock }> {
    const party = await subject.join({ leaseTime: LEASE });
    const { name, theirs } = subject.pair();
    return { party, name, mine: subject.of(party, name), theirs };
  }
  const deleteKey = (name: string) => subject.erase(name);

  describe.concurrent("a lost lease", () => {
    it.each(["deleted", "taken", "forced"] as const)(
      "aborts the body's signal, and withLock rejects (%s)",
      async (how) => {
        const { name, mine, theirs } = await holder();
        const bodyError = new Error("stopped by the signal");
        const reasons: unknown[] = [];
        const error = await failure(
          mine.withLock(async (lease) => {
            if (how === "forced") expect(await theirs.forceUnlock()).toBe(true);
            // Sent together with what takes it: a renewal between them would find it gone.
            const deleted = how === "forced" ? null : deleteKey(name);
            const usurper = how === "taken" ? await theirs.lock() : null;
            await deleted;
            reasons.push(await lossOf(lease.signal));
            expect([lease.held, usurper?.held ?? true]).toEqual([false, true]);
            await usurper?.unlock(); // rejects if the loser had released it
            throw bodyError;
          }),
        );
        expect(error).toBeInstanceOf(LockLostError);
        expect(error).toMatchObject({ lockName: name, cause: bodyError, reason: reasons[0] });
        // A client that is subscribed receives the force-release at once.
        const forced = subject.queues ? ["gone", "revoked"] : ["gone"];
        expect(how === "taken" ? [subject.taken] : how === "forced" ? forced : ["gone"]).toContain(
          reasons[0],
        );
      },
    );

    it("makes withLock reject if only the release finds it, whatever the body returned", async () => {
      const { name, mine } = subject.pair();
      const asks = subject.lingers ? { confirm: true } : {};
      const error = await failure(mine.withLock(asks, () => deleteKey(name)));
      expect(error).toBeInstanceOf(LockLostError);
      expect(error).toMatchObject({ reason: "gone" });
      expect((error as Error).cause).toBeUndefined();
      const bodyError = new Error("and failed");
      const failing = mine.withLock(asks, async () => {
        await deleteKey(name);
        throw bodyError;
      });
      expect(await failure(failing)).toMatchObject({ code: "LOCK_LOST", cause: bodyError });
    });

    it("never releases the lock of the present holder, if only the unlock finds the loss", async () => {
      const { name, mine, theirs } = subject.pair();
      const lease = await mine.lock({ lease: 30_000 });
      await deleteKey(name);
      const next = await theirs.lock();
      await subject.untilEverywhere(name);
      expect(lease.held).toBe(true); // nothing has told it yet
      expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST", reason: subject.taken });
      expect(await subject.first.redis.exists(subject.key(name))).toBe(1);
      await next.unlock(); // rejects if it had been released
    });

    it("is not hidden by a body that catches and rethrows the signal's reason", async () => {
      const { name, mine } = await holder();
      const error = await failure(
        mine.withLock(async ({ signal }) => {
          await deleteKey(name);
          await lossOf(signal);
          signal.throwIfAborted();
        }),
      );
      expect(error).toBeInstanceOf(LockLostError);
      expect(error).toMatchObject({ reason: "gone" });
      expect((error as Error).cause).toBeUndefined();
    });

    it("rejects every nested acquisition in its body", async () => {
      const { name, mine } = await holder();
      const seen: unknown[] = []; // an assertion that failed in the body would become the cause of the loss
      const outer = mine.withLock(async ({ signal }) => {
        await deleteKey(name);
        await lossOf(signal);
        seen.push(mine.isHeldHere());
        for (const nested of [() => mine.tryLock(), () => mine.lock(), () => mine.withLock(() => {})])
          seen.push(await failure(nested()));
      });
      expect(await failure(outer)).toBeInstanceOf(LockLostError);
      expect(seen).toEqual([false, ...[1, 2, 3].map(() => expect.any(LockLostError))]);
    });

    it("rejects every nested acquisition in its scope", async () => {
      const { mine, theirs } = subject.pair();
      await subject.first.locks.scope(async () => {
        const lease = await leased(() => mine.lock({ lease: 300 }));
        expect(await lossOf(lease.signal)).toBe("expired");
        expect(mine.isHeldHere()).toBe(false);
        expect(await failure(mine.tryLock())).toBeInstanceOf(LockLostError);
        await lease.unlock(); // the refused call has thrown the loss
      });
      await (await theirs.lock({ wait: 10_000 })).unlock();
    });

    it("notifies its borrowers, also those that still wait for their turn", async () => {
      const { name, mine } = await holder();
      const outcomes: unknown[] = [];
      const outer = mine.withLock(async () => {
        const first = mine.withLock(async ({ signal }) => {
          await deleteKey(name);
          await lossOf(signal);
        });
        const second = mine.withLock(() => "ran under a lost lock");
        outcomes.push(...(await Promise.allSettled([first, second])));
      });
      expect(await failure(outer)).toBeInstanceOf(LockLostError);
      expect(outcomes).toEqual([1, 2].map(() => ({ status: "rejected", reason: expect.any(LockLostError) })));
    });

    it("releases its waiters: the next caller of the same client acquires for itself", async () => {
      const { name, mine, theirs } = await holder();
      const lease = await mine.lock();
      const next = mine.lock({ wait: 10_000 });
      if (subject.isFair) await subject.untilWaiting(name, 1); // the others wait in memory
      await deleteKey(name);
      // A queued waiter may look before the holder renews.
      expect(["gone", "taken"]).toContain(await lossOf(lease.signal));
      const own = await next;
      expect([own.held, await tried(theirs)]).toEqual([true, null]);
      await own.unlock();
      await failure(lease.unlock());
    });
  });
}
