import { describe, expect, it, onTestFinished } from "vitest";
import { isLockLost, LockLostError } from "../../src/index.ts";
import { until } from "../support/until.ts";
import { failure } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** `await using` and `using` release, and tell of a loss in their own ways. */
export function disposal(subject: Subject): void {
  const deleteKey = (name: string) => subject.erase(name);

  describe("disposal", () => {
    it("wraps a loss in a SuppressedError when the body failed too, and isLockLost finds it", async () => {
      const { name, mine } = subject.pair();
      const work = async (isFailing: boolean) => {
        await using lease = await mine.lock(subject.proving);
        await deleteKey(name);
        if (isFailing) throw new Error(`a failure under ${lease.name}`);
      };
      const [wrapped, bare] = [await failure(work(true)), await failure(work(false))];
      expect(wrapped).not.toBeInstanceOf(LockLostError);
      expect(wrapped).toMatchObject({ suppressed: { message: `a failure under ${name}` } });
      expect([isLockLost(wrapped), isLockLost(bare), isLockLost(new Error())]).toEqual([true, true, false]);
    });

    it("releases by `await using` and `using`", async () => {
      const { mine, theirs } = subject.pair();
      {
        await using lease = await mine.tryLock();
        expect(lease?.held).toBe(true);
      }
      await (await theirs.lock({ wait: 10_000 })).unlock();
      {
        using lease = await mine.tryLock(10_000);
        expect(lease?.held).toBe(true);
      }
      await (await theirs.lock({ wait: 10_000 })).unlock();
    });

    it("reports a failed `using`, which cannot wait, as an error event", async () => {
      const { name, mine } = subject.pair();
      const errors: Error[] = [];
      const listener = (error: Error) => errors.push(error);
      subject.first.locks.on("error", listener);
      onTestFinished(() => void subject.first.locks.off("error", listener));
      {
        using lease = await mine.lock(subject.proving);
        await deleteKey(lease.name);
      }
      await until(() => errors.length > 0);
      expect(errors).toEqual([
        expect.objectContaining({ code: "LOCK_LOST", lockName: name, reason: "gone" }),
      ]);
    });
  });
}
