import { describe, expect, it } from "vitest";
import { Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

// Somebody deletes keys of a lock, Redis evicts them, or they hold something else: under a holder,
// and under waiters.

/** Longer than a busy machine stands still, and renewed after a third of it. */
const LEASE = 9_000;
const stage = new Stage({ near: { client: { leaseTime: LEASE } } });

describe("a key is deleted while the lock is held and waited for", () => {
  it("the lock of a holder without watchdog: unlock() reports it, and takes nothing from the next holder", async () => {
    const { near, far, lock } = stage;
    const lease = await near.locks.lock(lock.name).lock({ lease: 20_000 });
    const waiting = far.locks.lock(lock.name).lock();
    await lock.queued(1);
    await far.redis.del(lock.keys.lock);
    const next = await waiting;
    await expect(lease.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "taken" });
    expect([next.held, next.token > lease.token]).toEqual([true, true]);
    expect(await lock.holder()).toContain(far.locks.id);
    await next.unlock();
    const alone = await near.locks.lock(lock.name).lock({ lease: 20_000 });
    await far.redis.del(lock.keys.lock);
    await expect(alone.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "gone" });
  });
});

describe("everything is evicted (allkeys-lru, full)", () => {
  it("the holder is notified, two callers never hold it by one server's word, and the waiters get their turns", async () => {
    const { near, far, lock } = stage;
    const lease = await near.locks.lock(lock.name).lock();
    let inside = 0;
    const turns = [far, await stage.join()].map(({ locks }) =>
      locks.lock(lock.name).withLock(async ({ token }) => {
        expect([++inside, token > lease.token]).toEqual([1, true]);
        await far.redis.ping();
        inside--;
      }),
    );
    await lock.queued(2);
    await far.redis.config("SET", "maxmemory-policy", "allkeys-lru");
    await far.redis.config("SET", "maxmemory", "1");
    await until(async () => (await far.redis.exists(lock.keys.lock, lock.keys.queue)) === 0, {
      what: "Redis to evict",
    });
    await until(() => lease.signal.aborted, { what: "the holder's signal" });
    expect(["gone", "taken"]).toContain(lease.signal.reason.reason);
    await far.redis.config("SET", "maxmemory", "0");
    await far.redis.config("SET", "maxmemory-policy", "noeviction");
    await Promise.all(turns);
  });
});
