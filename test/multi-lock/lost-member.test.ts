import { beforeAll, describe, expect, it } from "vitest";
import { isLockLost, LockLostError } from "../../src/index.ts";
import { failure, lossOf } from "../contract/observe.ts";
import type { Party } from "../support/fixture.ts";
import { MultiLocks, three } from "../support/multi-locks.ts";
import { failScript } from "../support/scripts-sent.ts";
import { runs } from "../support/stage.ts";
import { warm } from "../support/warm.ts";

// Several locks as one, when one of them is lost or cannot be released.

const several = new MultiLocks();
let mine: Party;
let theirs: Party;
beforeAll(() => {
  ({ mine, theirs } = several);
});

describe("a loss", () => {
  it.each(["forced", "deleted", "expired"] as const)(
    "of one member aborts the one signal, names the member, and the others are released (%s)",
    async (how) => {
      const names = three();
      const { locks } = await several.join({ leaseTime: 900 });
      const bodyError = new Error("stopped");
      const errors: LockLostError[] = [];
      locks.on("lost", ({ error }) => errors.push(error));
      const error = await failure(
        locks.multiLock(names).withLock(how === "expired" ? { lease: 100 } : {}, async (lease) => {
          if (how === "forced") await theirs.locks.lock(names[1]).forceUnlock();
          if (how === "deleted") await mine.redis.del(several.look(names[1]).keys.lock);
          await lossOf(lease.signal);
          expect([lease.held, lease.remaining]).toEqual([false, 0]);
          expect(() => lease.assertHeld()).toThrow(LockLostError);
          throw bodyError;
        }),
      );
      expect(error, String(error)).toBeInstanceOf(LockLostError);
      const lockName = how === "expired" ? expect.any(String) : names[1];
      expect(error).toMatchObject({
        lockName,
        reason: how === "expired" ? "expired" : "gone",
        cause: bodyError,
      });
      // Their leases end within moments, and what has not ended by then is released.
      if (how === "expired") expect([1, 2, 3]).toContain(errors.length);
      else expect(errors).toHaveLength(1);
      await several.gone(names);
    },
  );

  it("of one member whose client is subscribed is reported at once", async () => {
    const names = three();
    const party = await several.join();
    await warm(theirs, party);
    const lease = await party.locks.multiLock(names).lock();
    await theirs.locks.lock(names[2]).forceUnlock();
    expect(await lossOf(lease.signal)).toBe("revoked");
    expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST", lockName: names[2] });
    await lease.unlock();
    await several.gone(names);
  });

  it("of several is an AggregateError that isLockLost searches", async () => {
    const names = three();
    const lease = await mine.locks.multiLock(names).lock();
    await mine.redis.del(several.look(names[0]).keys.lock, several.look(names[2]).keys.lock);
    const error = await failure(lease.unlock());
    expect(error).toBeInstanceOf(AggregateError);
    expect((error as AggregateError).errors).toMatchObject([{ lockName: names[0] }, { lockName: names[2] }]);
    expect(isLockLost(error)).toBe(true);
    await several.gone(names);
  });

  it("of one after its body returned leaves withLock's result, because the lease was not lost before", async () => {
    const names = three();
    expect(await mine.locks.multiLock(names).withLock(() => 42)).toBe(42);
    const bodyError = new Error("of the body");
    const failed = mine.locks.multiLock(names).withLock(() => {
      throw bodyError;
    });
    expect(await failure(failed)).toBe(bodyError);
    await several.gone(names);
  });
});

describe("a release that fails", () => {
  it("of one member leaves the others released, and its error is reported unchanged", async () => {
    const names = three();
    const lease = await mine.locks.multiLock(names).lock();
    await mine.redis.hset(several.look(names[1]).keys.queue, "not", "a queue");
    const error = await failure(lease.unlock());
    expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE", lockName: names[1] });
    expect((error as Error).message).toContain("WRONGTYPE");
    expect(await several.holders(names)).toEqual(["", mine.locks.id, ""]);
    await mine.redis.del(several.look(names[1]).keys.queue);
    await several.gone(names); // tried again behind
  });

  it("by the connection is reported for the lock in question, and nothing stays", async () => {
    const names = three();
    const { locks, redis } = await several.join();
    const lease = await locks.multiLock(names).lock();
    const failed = failScript(redis, runs("release"));
    const error = await failure(lease.unlock());
    await failed;
    expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE", lockName: names[0] });
    expect(isLockLost(error)).toBe(false);
    await several.gone(names);
  });
});
