import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { until } from "../support/until.ts";
import { failure, watchTraffic } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** A signal ends the waiting, and only that. */
export function aborting(subject: Subject): void {
  describe("a signal", () => {
    it("that has aborted before rejects the call with its reason and sends nothing", async () => {
      const { mine } = subject.pair();
      const traffic = watchTraffic(subject.first);
      const reason = new Error("shutting down");
      const signal = AbortSignal.abort(reason);
      expect(await failure(mine.tryLock({ signal }))).toBe(reason);
      expect(await failure(mine.lock({ signal }))).toBe(reason);
      expect(await failure(mine.withLock({ signal }, () => {}))).toBe(reason);
      expect(traffic.commands).toBe(0);
    });

    it.each(["theirs", "mine"] as const)(
      "that aborts during the wait rejects at once and leaves nothing (%s)",
      async (who) => {
        const pair = subject.pair();
        const lease = await pair.mine.lock();
        const controller = new AbortController();
        const waiter = failure(pair[who].lock({ signal: controller.signal }));
        if (who === "theirs") await subject.untilWaiting(pair.name, 1);
        const reason = { why: "any value will do" };
        controller.abort(reason);
        expect(await waiter).toBe(reason);
        if (who === "theirs" || subject.queues) await subject.untilWaiting(pair.name, 0);
        await lease.unlock();
        await (await pair[who].lock({ wait: 10_000 })).unlock();
      },
    );

    it("that aborts right after the call leaves no lock behind", async () => {
      const { mine, theirs } = subject.pair();
      const controller = new AbortController();
      const call = failure(mine.lock({ signal: controller.signal }));
      controller.abort("too late?");
      expect(await call).toBe("too late?");
      await (await theirs.lock({ wait: 10_000 })).unlock();
    });

    it("ends only the wait, not the lease", async () => {
      const { mine } = subject.pair();
      const controller = new AbortController();
      const lease = await mine.lock({ signal: controller.signal });
      expect(getEventListeners(controller.signal, "abort")).toEqual([]);
      controller.abort();
      expect([lease.held, lease.signal.aborted]).toEqual([true, false]);
      await lease.unlock();
    });

    it("shared by fifty waiters gets one listener, which is removed afterwards", async () => {
      const { name, mine, theirs } = subject.pair();
      const { signal } = new AbortController();
      const lease = await mine.lock();
      const waiters = Array.from({ length: 50 }, () => theirs.withLock({ signal }, () => {}));
      await until(async () => (await subject.waiting(name)) > 0);
      expect(getEventListeners(signal, "abort").length).toBe(1);
      await lease.unlock();
      await Promise.all(waiters);
      expect(getEventListeners(signal, "abort").length).toBe(0);
    });

    it("shared by fifty borrowers gets one listener, which is removed afterwards", async () => {
      const { mine } = subject.pair();
      const { signal } = new AbortController();
      await mine.withLock(async () => {
        const borrowers = Array.from({ length: 50 }, () => mine.withLock({ signal }, () => {}));
        expect(getEventListeners(signal, "abort").length).toBe(1);
        await Promise.all(borrowers);
      });
      expect(getEventListeners(signal, "abort").length).toBe(0);
    });
  });
}
