import { describe, expect, it } from "vitest";
import { until } from "../support/until.ts";
import type { Subject } from "./subject.ts";

/** Long enough to be extended, also by a process that stood still for a second. */
const LEASE = 2_000;

/** Making a lease last longer by hand. */
export function extension(subject: Subject): void {
  describe.concurrent("extend", () => {
    it.each([true, false])(
      "makes a lease last at least the given time from now (watchdog: %s)",
      async (watchdog) => {
        const { name, mine } = subject.pair();
        const lease = await mine.lock({ lease: 5_000, watchdog });
        await lease.extend(60_000);
        expect(lease.remaining).toBeGreaterThan(50_000);
        expect(await subject.first.redis.pttl(subject.key(name))).toBeGreaterThan(50_000);
        await lease.extend(10); // never shortens
        expect(lease.remaining).toBeGreaterThan(50_000);
        expect(await subject.first.redis.pttl(subject.key(name))).toBeGreaterThan(50_000);
        await lease.unlock();
      },
    );

    it("keeps a lease alive past its first end", async () => {
      const { mine, theirs } = subject.pair();
      const lease = await mine.lock({ lease: LEASE });
      const start = performance.now();
      await lease.extend(10_000);
      await until(() => performance.now() - start > 1.2 * LEASE); // past its first end
      expect([lease.held, lease.signal.aborted, await theirs.tryLock()]).toEqual([true, false, null]);
      await lease.unlock();
    });

    it("refuses bad numbers, a released lease and a lost one", async () => {
      const { name, mine } = subject.pair();
      const lost = await mine.lock({ lease: 10_000 });
      await expect(lost.extend(9.5)).rejects.toThrow(RangeError);
      await expect(lost.extend(undefined as unknown as number)).rejects.toThrow(TypeError);
      await subject.erase(name);
      await expect(lost.extend(1_000)).rejects.toMatchObject({ code: "LOCK_LOST", reason: "gone" });
      await lost.unlock(); // extend() has thrown the loss
      const released = await mine.lock();
      await released.unlock();
      await expect(released.extend(1_000)).rejects.toMatchObject({ code: "LOCK_RELEASED" });
    });
  });
}
