import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { freshName, type Party } from "../support/fixture.ts";
import { ALLOW_DEBUG } from "../support/server-pauses.ts";
import { Stage, timed } from "../support/stage.ts";
import { until } from "../support/until.ts";

// Redis answers, and will not do what it is asked. While that lasts nothing is done by halves; then
// everything goes on.

const stage = new Stage({ args: ALLOW_DEBUG });

interface Refusal {
  /** The first word of what Redis says. */
  says: string;
  begin(redis: Redis): Promise<unknown>;
  end(redis: Redis): Promise<unknown>;
}

const refusals: Refusal[] = [
  {
    says: "READONLY", // the primary was made a replica
    begin: (redis) => redis.replicaof("127.0.0.1", 1),
    end: (redis) => redis.replicaof("NO", "ONE"),
  },
  {
    says: "NOREPLICAS", // min-replicas-to-write, and there is none
    begin: (redis) => redis.config("SET", "min-replicas-to-write", "1"),
    end: (redis) => redis.config("SET", "min-replicas-to-write", "0"),
  },
  {
    says: "MISCONF", // the last snapshot failed
    async begin(redis) {
      await mkdir(join(stage.server.dir, "dump.rdb")); // no file can take the place of a folder
      await redis.config("SET", "save", "3600 1000000");
      await redis.call("BGSAVE");
      const hasFailed = /rdb_bgsave_in_progress:0.*rdb_last_bgsave_status:err/s;
      await until(async () => hasFailed.test(await redis.info("persistence")), {
        what: "a snapshot to fail",
      });
    },
    async end(redis) {
      await redis.config("SET", "save", "");
      await rm(join(stage.server.dir, "dump.rdb"), { recursive: true });
    },
  },
];

const refusedWith = (says: string) => ({
  code: "LOCK_UNAVAILABLE",
  cause: { message: expect.stringContaining(says) },
});

/** A holder with a lease of so many ms, and a caller of another client that waits behind it. */
async function heldAndWaitedFor(leaseTime: number) {
  const { far, lock } = stage;
  const holder: Party = await stage.join({ client: { leaseTime } });
  const errors: unknown[] = [];
  holder.locks.on("error", (error) => errors.push(error));
  const lease = await holder.locks.lock(lock.name).lock();
  const waiting = far.locks.lock(lock.name).lock();
  await lock.queued(1);
  return { lease, waiting, errors };
}

describe.each(refusals)("$says", ({ says, begin, end }) => {
  it("no new holder or place is accepted, and a busy lock is still reported as busy", async () => {
    const { near, far, lock } = stage;
    const { lease, waiting } = await heldAndWaitedFor(30_000);
    const other = freshName();
    await begin(far.redis);
    await expect(near.locks.lock(other).tryLock()).rejects.toMatchObject(refusedWith(says));
    await expect(near.locks.lock(other).lock()).rejects.toMatchObject(refusedWith(says));
    expect(await near.locks.lock(lock.name).tryLock()).toBeNull();
    await expect(near.locks.lock(lock.name).tryLock(1_000)).rejects.toMatchObject(refusedWith(says));
    await expect(near.locks.lock(lock.name).forceUnlock()).rejects.toMatchObject(refusedWith(says));
    expect(await far.redis.keys(`*${other}*`)).toEqual([]);
    expect([lease.held, (await lock.waiters()).length]).toEqual([true, 1]);
    await end(far.redis);
    await lease.unlock();
    await (await waiting).unlock();
    await lock.gone();
  });

  it("a release is refused whole: unlock() rejects, and hands over when Redis writes again", async ({
    annotate,
  }) => {
    const { far, lock } = stage;
    const { lease, waiting } = await heldAndWaitedFor(30_000);
    const [holder, waiters] = [await lock.holder(), await lock.waiters()];
    await begin(far.redis);
    await expect(lease.unlock()).rejects.toMatchObject(refusedWith(says));
    expect([await lock.holder(), await lock.waiters()]).toEqual([holder, waiters]);
    await end(far.redis);
    const [next, waited] = await timed(waiting);
    await annotate(`the next one ${waited} ms later`);
    expect(waited).toBeLessThan(8_000); // tried again every 2 s or sooner; the lease would be 30 s
    await next.unlock();
    await lock.gone();
  });

  it("for less than a lease: renewals fail, and the holder keeps the lock", async () => {
    const { far } = stage;
    const { lease, waiting, errors } = await heldAndWaitedFor(1_500);
    await begin(far.redis);
    await until(() => errors.length > 0, { what: "a renewal to fail" });
    expect(errors[0]).toMatchObject(refusedWith(says));
    await end(far.redis);
    await until(() => lease.remaining > 1_100, { what: "a renewal" });
    expect([lease.held, lease.signal.aborted]).toEqual([true, false]);
    await lease.unlock();
    await (await waiting).unlock();
  });

  it("for longer than a lease: it expires, and the waiter has the lock afterwards", async ({ annotate }) => {
    const { far, lock } = stage;
    const { lease, waiting } = await heldAndWaitedFor(1_000);
    await begin(far.redis);
    await until(() => lease.signal.aborted, { what: "the holder's signal" });
    expect(lease.signal.reason).toMatchObject({ reason: "expired" });
    await until(async () => (await lock.left()) < 0, { what: "the key to end" });
    await end(far.redis);
    const [next, waited] = await timed(waiting);
    await annotate(`the next one ${waited} ms later`);
    expect(waited).toBeLessThan(3 * 2_500);
    await expect(lease.unlock()).rejects.toMatchObject({ reason: "expired" });
    await next.unlock();
    await lock.gone();
  });
});

describe("LOADING", () => {
  it("calls fail with typed errors, holders keep their locks, and waiters get the lock afterwards", async ({
    annotate,
  }) => {
    const { near, far, lock } = stage;
    const { lease, waiting } = await heldAndWaitedFor(30_000);
    const [holder, waiters] = [await lock.holder(), await lock.waiters()];
    const admin = await stage.join();
    for (let i = 0; i < 300; i++) await admin.redis.set(`ballast:${i}`, "x".repeat(4_096), "EX", 60);
    await admin.redis.config("SET", "rdbcompression", "no");
    await admin.redis.config("SET", "loading-process-events-interval-bytes", "4096");
    await admin.redis.config("SET", "key-load-delay", "5000"); // µs for each key
    const loaded = timed(admin.redis.call("DEBUG", "RELOAD"));
    await expect(
      until(() => near.locks.lock(freshName()).withLock(() => false), { what: "Redis to load" }),
    ).rejects.toMatchObject(refusedWith("LOADING"));
    await expect(near.locks.lock(lock.name).lock({ wait: 300 })).rejects.toMatchObject(
      refusedWith("LOADING"),
    );
    await annotate(`loading for ${(await loaded)[1]} ms`);
    expect([await lock.holder(), await lock.waiters()]).toEqual([holder, waiters]);
    await lease.unlock();
    const [next, waited] = await timed(waiting);
    await annotate(`the next one ${waited} ms after the unlock`);
    expect(next.token).toBeGreaterThan(lease.token);
    await next.unlock();
    await far.redis.flushall();
  });
});

describe("NOSCRIPT", () => {
  it("before any step of a lock's life goes unnoticed", async () => {
    const { near, far, lock } = stage;
    const flush = () => far.redis.script("FLUSH");
    for (const lock of [near, far].map(({ locks }) => locks.lock(freshName()))) {
      await flush();
      const lease = await lock.lock({ lease: 5_000 });
      await flush();
      await lease.extend(10_000);
      await flush();
      expect((await lock.inspect()).token).toBe(lease.token);
      await flush();
      await lease.unlock();
    }
    await flush();
    const held = await far.locks.lock(lock.name).lock();
    await flush();
    const { locks } = await stage.join({ client: { localHandoffs: 0 } });
    const own = [locks.lock(lock.name).lock({ lease: 20_000 }), locks.lock(lock.name).lock()];
    await lock.queued(1);
    await flush();
    await lock.lookedAt();
    await flush(); // before a release, a grant and a claim
    await held.unlock();
    const lease = await own[0];
    const other = (await stage.join()).locks.lock(lock.name).lock();
    await lock.queued(1);
    await flush(); // before a yield
    await lease?.unlock();
    await (await other).unlock();
    await (await own[1])?.unlock();
    await lock.gone();
  });
});
