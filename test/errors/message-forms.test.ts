import { readFileSync } from "node:fs";
import { Redis } from "ioredis";
import { afterAll, afterEach, expect, it, onTestFinished, vi } from "vitest";
import { fencedSet } from "../../src/fencing/index.ts";
import { type Lease, LockError, type LockErrorCode } from "../../src/index.ts";
import { optimistic } from "../../src/optimistic/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { Keys } from "../../src/redis/keys.ts";
import { launchServer } from "../../tools/redis/index.ts";
import { failure } from "../contract/observe.ts";
import { circle } from "../support/circles.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
import { running } from "../support/result-runs.ts";
import { until } from "../support/until.ts";
import { faultsOf } from "./house-form.ts";

// Every code of an error, raised as it comes to callers, and every warning: each message is one
// sentence, names the lock in quotes, and says nothing of the inside of this package.
vi.mock("../../src/defaults.ts", async (all) => ({
  ...((await all()) as object),
  DEADLOCK_AFTER: 200,
  DEADLOCK_AGAIN: 100,
}));

const parties = new Parties();
afterEach(parties.close);
afterAll(parties.close);

const join = async (client = {}) => (await parties.join({ client })).locks;

/** What a client reports that no caller sees. */
async function reported(locks: Awaited<ReturnType<typeof join>>, work: () => Promise<unknown>) {
  const told: unknown[] = [];
  locks.on("error", (error) => told.push(error));
  await work();
  await until(() => told.length > 0);
  return told;
}

/** A connection that nothing answers. */
function nowhere(retry: number | null = 20): Redis {
  const redis = new Redis({ host: "127.0.0.1", port: 1, retryStrategy: () => retry });
  redis.on("error", () => {});
  return redis;
}

/** How each comes about. Each gives one error or several. */
const RAISED: Record<LockErrorCode, (name: string) => Promise<unknown>> = {
  LOCK_TIMEOUT: async (name) => {
    const [near, far] = await Promise.all([join(), join({ label: "charge" })]);
    const held = [
      await far.lock(name).lock(),
      await far.semaphore(name, { permits: 2 }).acquire(2),
      await far.election(name).campaign(),
      await far.readWriteLock(name).write.lock(),
    ];
    await running(far, name);
    const pool = near.semaphore(name, { permits: 2 });
    const { read, write } = near.readWriteLock(name);
    const calls = [0, 20].flatMap((wait) => [
      failure(near.lock(name).lock({ wait })),
      failure(far.lock(name).lock({ wait })),
      failure(pool.acquire(2, { wait })),
      failure(near.election(name).campaign({ wait })),
      failure(read.lock({ wait })),
      failure(write.lock({ wait })),
      failure(near.remember(name, { keep: 0, wait }, () => {})),
      failure(far.remember(name, { keep: 0, wait }, () => {})),
      failure(near.multiLock([name, freshName()]).lock({ wait })),
    ]);
    const errors = await Promise.all(calls);
    expect(held.every((one) => one.held)).toBe(true);
    return errors;
  },
  LOCK_LOST: async (name) => {
    const [near, far] = await Promise.all([join(), join()]);
    near.on("error", () => {}); // of the scope that takes a lease
    const expired = await near.lock(freshName()).lock({ lease: 500 });
    const tooLong = await near.lock(freshName()).lock({ maxHold: 500 });
    const term = await near.election(name).campaign();
    const lease = await near.lock(name).lock();
    const left = await near.scope(() => near.lock(freshName()).lock());
    await far.lock(name).forceUnlock({ label: "alice" });
    await far.election(name).forceResign({ label: "alice" });
    const { ended } = await running(near, name);
    await far.stopRun(name, { label: "alice" });
    await until(() => expired.signal.aborted && tooLong.signal.aborted && term.signal.aborted);
    const errors = [expired, tooLong, lease, left].map((one) => failure(one.unlock()));
    const other = await near.lock(freshName()).lock();
    await near.close({ grace: 0 });
    return Promise.all([...errors, failure(term.resign()), failure(other.unlock()), ended]);
  },
  LOCK_UNAVAILABLE: async (name) => {
    const redis = nowhere();
    const { locks } = await parties.join({
      connect: () => redis,
      redis: { lazyConnect: true },
      client: { replyTimeout: 1_000 },
    });
    const errors = await Promise.all([
      failure(locks.lock(name).tryLock()),
      failure(locks.lock(name).inspect()),
      failure(locks.semaphore(name, { permits: 1 }).tryAcquire()),
      failure(locks.runOnce(name, { every: 1_000 }, () => 1)),
      failure(locks.lock(name).forceUnlock()),
      failure(locks.remember(name, { keep: 0 }, () => 1)),
      failure(locks.remembered(name)),
      failure(locks.forget(name)),
      failure(locks.stopRun(name)),
    ]);
    const ended = nowhere(null);
    const over = await parties.join({ connect: () => ended, redis: { lazyConnect: true } });
    await until(() => ended.status === "end");
    return [...errors, await failure(over.locks.lock(name).tryLock())];
  },
  LOCK_NOT_REPLICATED: async (name) => {
    const locks = await join({ replicas: 1, replicaTimeout: 20, linger: 0 });
    return failure(locks.lock(name).lock());
  },
  LOCK_FORMAT: async (name) => {
    const { redis, locks } = await parties.join();
    await redis.set(new Keys("", false).of(name).lock, "20 of a later version", "PX", 60_000);
    return failure(locks.lock(name).tryLock());
  },
  LOCK_RELEASED: async (name) => {
    const locks = await join();
    const lease = await locks.lock(name).lock();
    const permit = await locks.semaphore(name, { permits: 1 }).acquire();
    const term = await locks.election(name).campaign();
    await Promise.all([lease.unlock(), permit.release(), term.resign()]);
    const checks = [lease, permit, term].map(async (one) => one.assertHeld());
    return Promise.all(checks.map(failure));
  },
  LOCK_LEFT_BEHIND: async (name) => {
    const locks = await join();
    return reported(locks, async () => {
      await locks.scope(() => locks.lock(name).lock());
      await locks.lock(name).lock();
      await locks.close({ grace: 1 });
    });
  },
  LOCK_ORDER: async (name) => {
    const locks = await join();
    return locks.lock(`${name}:z`).withLock(() => failure(locks.multiLock([name, `${name}:z`]).lock()));
  },
  LOCK_UPGRADE: async (name) => {
    const { read, write } = (await join()).readWriteLock(name);
    return read.withLock(() => failure(write.lock()));
  },
  LOCK_WANTED: async (name) => {
    const [near, far] = await Promise.all([join(), join({ label: "charge" })]);
    const lease = await near.lock(name).lock();
    const { wanted } = lease;
    const waiter = far.lock(name).lock();
    await until(() => wanted.aborted);
    await lease.unlock();
    await (await waiter).unlock();
    return wanted.reason;
  },
  DEADLOCK: async () => {
    const clients = await Promise.all([1, 2].map(() => join({ deadlocks: "reject", label: "charge" })));
    const ended = await Promise.all(circle(clients).outcomes);
    return ended.filter((one) => one instanceof Error);
  },
  PERMITS_DIFFER: async (name) => {
    const locks = await join();
    await using _ = await locks.semaphore(name, { permits: 2 }).acquire();
    return await failure((await join()).semaphore(name, { permits: 3 }).acquire());
  },
  PERMITS_UNKNOWN: async (name) => failure((await join()).semaphore(name).acquire()),
  TOO_MANY_HOLDS: async (name) => {
    const { redis, locks } = await parties.join();
    const { hash } = new Keys("", false).ofCounted("semaphore", name);
    const pool = locks.semaphore(name, { permits: 1_000_000 });
    await using _ = await pool.acquire();
    // As the books are when so many have permits.
    const books = (await redis.hget(hash, "=")) ?? "";
    await redis.hset(hash, "=", books.replace(/^(\S+ \d+ \d+) \d+/, "$1 10000"));
    return await failure((await join()).semaphore(name, { permits: 1_000_000 }).acquire());
  },
  FINGERPRINT_DIFFERS: async (name) => {
    const locks = await join();
    await locks.remember(name, { keep: 60_000, fingerprint: "one" }, () => 1);
    return failure(locks.remember(name, { keep: 60_000, fingerprint: "other" }, () => 2));
  },
  RESULT_NOT_STORABLE: async (name) => {
    const locks = await join();
    const values = [1n, () => {}, "x".repeat(64 * 1_024)];
    const runs = values.map((value, i) =>
      failure(locks.remember(`${name}:${i}`, { keep: 60_000 }, () => value)),
    );
    const errors = await Promise.all(runs);
    return [...errors, await failure(locks.remembered(`${name}:0`))];
  },
  SETTING_DIFFERS: async (name) => {
    const locks = await join();
    await (await join()).semaphore(name).setPermits(5);
    const told: unknown[] = [];
    locks.on("error", (error) => told.push(error));
    await (await locks.semaphore(name, { permits: 20 }).acquire()).release();
    await (await join()).runOnce(name, { every: 86_400_000, onCrash: "keep" }, () =>
      locks.runOnce(name, { every: 60_000 }, () => {}),
    );
    await until(() => told.length === 2);
    return told;
  },
  QUORUM_TWIN: async (name) => {
    const other = await launchServer();
    onTestFinished(() => other.stop());
    const masters = [testUrl(), other.url, other.url].map((url) => new Redis(url));
    onTestFinished(() => masters.forEach((redis) => void redis.disconnect()));
    const locks = createQuorumClient(masters, { restartDelay: 0 });
    // RACE: an unlock before the twin is known would reach it, and end the hold at its other node first.
    let lease: Lease | undefined;
    const told = await reported(locks as never, async () => {
      lease = await locks.lock(name).lock();
    });
    await lease?.unlock();
    await locks.close();
    return told;
  },
  NO_MESSAGES: async (name) => {
    const server = await launchServer();
    onTestFinished(() => server.stop());
    const admin = new Redis(server.url);
    onTestFinished(() => admin.disconnect());
    await admin.acl("SETUSER", "default", "-subscribe");
    const { locks } = await parties.join({ url: server.url });
    return await reported(locks, () => locks.lock(name).withLock(() => {}));
  },
  LISTENER_FAILED: async (name) => {
    const locks = await join();
    locks.on("acquire", () => {
      throw new Error("not today");
    });
    return reported(locks, () => locks.lock(name).withLock(() => {}));
  },
  BODY_FAILED: async (name) => {
    // The renewal learns of the end: after a third of the lease.
    const [locks, other] = await Promise.all([join({ leaseTime: 3_000 }), join()]);
    let terms = 0;
    return reported(locks, () =>
      locks.election(name).runAsLeader(async (term) => {
        if (terms++ > 0) return;
        await other.election(name).forceResign();
        await until(() => term.signal.aborted);
        throw new Error("not today");
      }),
    );
  },
  STALE_TOKEN: async (name) => {
    const { redis } = await parties.join();
    const token = Date.now() * 1_000;
    await fencedSet(redis, name, "new", { fence: token });
    const forgotten = fencedSet(redis, name, "old", { fence: 1_600_000_000_000_000 });
    return Promise.all([failure(fencedSet(redis, name, "old", { fence: token - 1 })), failure(forgotten)]);
  },
  FENCED_WRITE_FAILED: async (name) => {
    const redis = nowhere();
    onTestFinished(() => redis.disconnect());
    return failure(fencedSet(redis, name, "new", { fence: 1_700_000_000_000_002, replyTimeout: 50 }));
  },
  CLIENT_CLOSED: async (name) => {
    const locks = await join();
    await locks.close();
    return failure(locks.lock(name).tryLock());
  },
  CONFLICT: async (name) => {
    const { redis } = await parties.join();
    const write = () => redis.incr(name);
    return failure(optimistic(redis, [name], async (tx) => tx.multi.get(`${await write()}`), { retries: 1 }));
  },
  TRANSACTION_FAILED: async (name) => {
    const { redis } = await parties.join();
    return failure(optimistic(redis, [name], (tx) => void tx.multi.set(name, "text").incr(name)));
  },
};

it("the table has every code", () => {
  const text = readFileSync(new URL("../../src/api/errors.ts", import.meta.url), "utf8");
  const [, codes = ""] = /export type LockErrorCode =([^;]*);/.exec(text) ?? [];
  expect(Object.keys(RAISED).sort()).toEqual([...codes.matchAll(/"(\w+)"/g)].map(([, code]) => code).sort());
});

it.each(Object.entries(RAISED))("%s", async (code, raise) => {
  const raised = [await raise(freshName("order:42"))].flat() as LockError[];
  expect(raised.length).toBeGreaterThan(0);
  for (const error of raised) {
    expect(error).toBeInstanceOf(LockError);
    expect(error.code).toBe(code);
    expect(faultsOf(error.message, error.lockName)).toEqual([]);
  }
});

it("the test detects a message that breaks the rule", () => {
  expect(faultsOf("Lock 'x' is held.", "x")).toEqual([]);
  for (const wrong of [
    "no reply to handoff/first-acquire within 5000 ms",
    "Lock 'x' is held. Wait longer.",
    "Lock 'x' is held",
    "Lock x is held.",
    "Lock 'x' is held by somebody else.",
  ])
    expect(faultsOf(wrong, "x"), wrong).not.toEqual([]);
});
