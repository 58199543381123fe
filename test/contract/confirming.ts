import { describe, expect, it } from "vitest";
import { failure } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** `withLock` with `confirm`: Redis says at the end whether the lock was held so far. */
export function confirming(subject: Subject): void {
  describe.concurrent("withLock with `confirm`", () => {
    it("resolves with the body's result", async () => {
      const { mine, theirs } = subject.pair();
      expect(await mine.withLock({ confirm: true }, () => 1)).toBe(1);
      expect(await mine.withLock({ confirm: true }, () => mine.withLock({ confirm: true }, () => 2))).toBe(2);
      await (await theirs.lock()).unlock();
    });

    it("rejects when the lock was lost, also if another caller of this process waits for it", async () => {
      const { name, mine } = subject.pair();
      const { locks } = subject.first;
      let others: Promise<PromiseSettledResult<string>[]> | undefined;
      const error = await failure(
        mine.withLock({ confirm: true }, async () => {
          // These would get it by a local hand-off, which needs no round trip.
          others = Promise.allSettled([1, 2].map(() => locks.outside(() => mine.withLock(() => "others"))));
          await subject.erase(name);
        }),
      );
      // One of the others may have taken it by then.
      expect(error).toMatchObject({ code: "LOCK_LOST", reason: expect.stringMatching(/^(gone|taken)$/) });
      expect(await others).toHaveLength(2);
      // Readers share one hold, and one that came in before it was erased has lost it, too.
      const isShared = subject.kind === "readLock";
      for (const other of (await others) ?? [])
        if (!isShared || other.status === "fulfilled") expect(other).toMatchObject({ value: "others" });
        else expect(other.reason).toMatchObject({ code: "LOCK_LOST", reason: "gone" });
    });

    it("makes a borrower reject at its own end, and not at the end of the outer body", async () => {
      const { name, mine } = subject.pair();
      const ends: unknown[] = [];
      const error = await failure(
        mine.withLock(async () => {
          await subject.erase(name);
          ends.push(await failure(mine.withLock({ confirm: true }, () => {})));
        }),
      );
      for (const one of [...ends, error]) expect(one).toMatchObject({ code: "LOCK_LOST", reason: "gone" });
      expect(ends).toHaveLength(1);
    });
  });
}
