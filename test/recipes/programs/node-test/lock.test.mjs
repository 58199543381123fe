// As a user has it, with Node's own runner; the same under timers that it has replaced.
import assert from "node:assert/strict";
import { after, before, describe, it, mock } from "node:test";
import { LockLostError, LockTimeoutError } from "holdfast";
import { createTestLocks } from "holdfast/testing";

for (const timers of ["real", "fake"])
  describe(`timers ${timers}`, () => {
    if (timers === "fake") {
      before(() => mock.timers.enable());
      after(() => mock.timers.reset());
    }

    it("busy, advance: a caller has waited", async () => {
      const locks = createTestLocks();
      const other = await locks.test.busy("order:42");
      const late = assert.rejects(locks.lock("order:42").lock({ wait: 5_000 }), LockTimeoutError);
      await locks.test.advance(5_000);
      await late;
      await other.undo();
      assert.equal((await locks.lock("order:42").tryLock())?.held, true);
    });

    it("lose, expire: a holder learns of it", async () => {
      const locks = createTestLocks();
      for (const how of ["lose", "expire"]) {
        const lease = await locks.lock("order:42").lock();
        assert.equal(await locks.test[how]("order:42"), 1);
        assert.ok(lease.signal.reason instanceof LockLostError);
      }
    });

    // The process ends by itself: what is held keeps it from nothing.
    it("leaves what it holds", async () => {
      const locks = createTestLocks();
      await locks.lock("order:42").lock();
      await locks.readWriteLock("config").read.lock();
      await locks.semaphore("smtp", { permits: 1 }).acquire();
      await locks.election("scheduler").campaign();
    });
  });
