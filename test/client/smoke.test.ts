import { once } from "node:events";
import { Redis, type RedisOptions } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { Valkey } from "iovalkey";
import { afterAll, beforeAll, describe, expect, it, type TestContext } from "vitest";
import {
  createLockClient,
  isLockLost,
  type Lock,
  type LockClient,
  type LockClientOptions,
  type RedisLike,
} from "../../src/index.ts";
import type { LockKind } from "../support/actor-process.ts";
import { awake } from "../support/awake.ts";
import { freshName, testUrl } from "../support/fixture.ts";
import { keysWithoutTtl } from "../support/leaks.ts";
import { lockOf } from "../support/permit.ts";
import { until } from "../support/until.ts";

/** A connection of ioredis 5 or 6, or of iovalkey. */
interface Connection extends RedisLike {
  disconnect(): void;
}

/** A way to configure ioredis, or the lock client. */
interface Setting {
  redis?: RedisOptions;
  client?: LockClientOptions;
  /** With another client than ioredis 6. */
  connect?: (options: object) => Connection;
}

/** Of the tests, only those with a prefix work here. */
const PREFIXED = { keyPrefix: "app:", db: 7 };

const ioredis6 = (options: object): Connection => new Redis(testUrl(), options);
const ioredis5 = (options: object): Connection => new Redis5(testUrl(), options);
const iovalkey = (options: object): Connection => new Valkey(testUrl(), options);

const SETTINGS: Record<string, Setting> = {
  "the defaults": {},
  keyPrefix: { redis: PREFIXED },
  stringNumbers: { redis: { stringNumbers: true } },
  "db 3": { redis: { db: 3 } },
  lazyConnect: { redis: { lazyConnect: true } },
  "no offline queue": { redis: { enableOfflineQueue: false } },
  autoPipelining: { redis: { enableAutoPipelining: true } },
  RESP2: { redis: { protocol: 2 } },
  RESP3: { redis: { protocol: 3 } },
  "RESP3 with its reply types": { redis: { protocol: 3, replyMapping: "resp3" } },
  "commandTimeout 10 s": { redis: { commandTimeout: 10_000 } },
  "ioredis 5": { connect: ioredis5 },
  "ioredis 5, keyPrefix, stringNumbers": { connect: ioredis5, redis: { ...PREFIXED, stringNumbers: true } },
  iovalkey: { connect: iovalkey },
  "friendly error stacks, stringNumbers": { redis: { showFriendlyErrorStack: true, stringNumbers: true } },
  "own connection": { client: { connection: "own" } },
  "own connection, keyPrefix, lazyConnect, no offline queue": {
    redis: { ...PREFIXED, lazyConnect: true, enableOfflineQueue: false },
    client: { connection: "own" },
  },
};

const KINDS: LockKind[] = ["lock", "fairLock", "redissonLock", "spinLock"];

/** Connections without options, to see what is really in Redis. */
const raw = new Map<number, Redis>();

beforeAll(() => {
  for (const db of [0, 3, 7]) raw.set(db, new Redis(testUrl(), { db }));
});
afterAll(async () => {
  expect(await rawDb(7).exists("app:holdfast:clock"), "the clock has the prefix").toBe(1);
  expect(await rawDb(7).exists("holdfast:clock"), "and only the prefixed one is there").toBe(0);
  for (const redis of raw.values()) redis.disconnect();
});

describe.concurrent.each(Object.entries(SETTINGS))("%s", (_, setting) => {
  it.for(KINDS)("%s", (kind, test) => smoke(kind, setting, test));
});

it("iovalkey: two clients hand over permits of a semaphore", async (test) => {
  const name = freshName("semaphore");
  const here = (await join({ connect: iovalkey }, test)).locks.semaphore(name, { permits: 2 });
  const there = (await join({ connect: iovalkey }, test)).locks.semaphore(name, { permits: 2 });
  const lease = await here.acquire(2);
  expect(await there.tryAcquire()).toBeNull();
  const granted = there.acquire();
  await until(async () => (await here.inspect()).waiters.length === 1);
  const since = awake();
  await lease.release();
  const next = await granted;
  expect(awake() - since, "handed over by message").toBeLessThan(1_000);
  expect(await here.inspect()).toMatchObject({ used: 1, waiters: [] });
  await next.release();
  expect((await here.inspect()).used).toBe(0);
});

/** All that a user does with a lock, once. */
async function smoke(kind: LockKind, setting: Setting, test: TestContext): Promise<void> {
  const name = freshName(kind);
  const here = await join(setting, test);
  const there = await join(setting, test);
  const lock = lockOf(here.locks, kind, name);
  const other = lockOf(there.locks, kind, name);

  await uncontended(kind, lock, other);
  const waiting = once(there.locks as never, "wait");
  await handedOver(lock, other, waiting, () => expectKeys(name, setting));
  await renewed(here.redis, setting, (locks) => lockOf(locks, kind, name), other);
  await excluded(`${name}:counter`, lock, other);
  await forced(lock, other);

  const { status } = here.redis;
  await Promise.all([here.locks.close(), there.locks.close()]);
  await expect(lock.tryLock()).rejects.toMatchObject({ code: "CLIENT_CLOSED" });
  expect(here.redis.status, "the caller's connection stays as it is").toBe(status);
  expect(await keysWithoutTtl(rawDb(setting.redis?.db ?? 0), `*${name}*`)).toEqual([]);
}

async function uncontended(kind: LockKind, lock: Lock, other: Lock): Promise<void> {
  const lease = await lock.lock();
  expect(lease.held).toBe(true);
  expect(lease.remaining).toBeGreaterThan(20_000);
  const isFenced = kind !== "redissonLock" && kind !== "spinLock";
  expect("token" in lease).toBe(isFenced);
  if (isFenced) expect(Number.isSafeInteger(lease.token) && lease.token > 0).toBe(true);
  expect(await other.tryLock()).toBeNull();
  expect(await other.isLocked()).toBe(true);
  await lease.unlock();
  const next = await other.tryLock(0, 5_000);
  if (isFenced) expect(next?.token).toBeGreaterThan(lease.token);
  await next?.extend(10_000);
  expect(next?.remaining).toBeGreaterThan(8_000);
  await next?.unlock();
  expect(await lock.isLocked()).toBe(false);
}

/** By message: the earliest re-check of a hold that has just parked comes after 1.1 s. */
async function handedOver(
  lock: Lock,
  other: Lock,
  waiting: Promise<unknown>,
  look: () => Promise<void>,
): Promise<void> {
  const lease = await lock.lock();
  const granted = other.lock({ wait: 10_000 });
  await waiting;
  if (lease.token > 0) await until(async () => (await lock.inspect()).waiters?.length === 1);
  await look();
  const asked = awake();
  await lease.unlock();
  const next = await granted;
  expect(awake() - asked, "handed over by message").toBeLessThan(1_000);
  expect(next.held).toBe(true);
  if (lease.token > 0) expect(next.token).toBeGreaterThan(lease.token);
  await next.unlock();
}

/** A second client on the same connection, whose leases are short. */
async function renewed(
  redis: Connection,
  { client }: Setting,
  lockOf: (locks: LockClient) => Lock,
  other: Lock,
): Promise<void> {
  const leaseTime = 3_000;
  await using locks = createLockClient(redis, { ...client, leaseTime });
  locks.on("error", () => {}); // a renewal that a busy machine delays is tried again
  let renewals = 0;
  locks.on("renew", () => {
    renewals += 1;
  });
  const lease = await lockOf(locks).lock();
  const end = performance.now() + leaseTime; // without a renewal it is over by then
  expect(lease.remaining).toBeLessThanOrEqual(leaseTime);
  await until(() => renewals >= 1, { what: "a renewal" });
  expect(performance.now() + lease.remaining).toBeGreaterThan(end);
  expect(lease.held).toBe(true);
  expect(await other.tryLock()).toBeNull();
  await lease.unlock();
}

async function excluded(key: string, lock: Lock, other: Lock): Promise<void> {
  const redis = rawDb(0);
  const add = async (): Promise<void> => {
    await redis.set(key, Number(await redis.get(key)) + 1, "PX", 60_000);
  };
  await Promise.all([lock, other].flatMap((one) => Array.from({ length: 10 }, () => one.withLock(add))));
  expect(Number(await redis.get(key))).toBe(20);
}

async function forced(lock: Lock, other: Lock): Promise<void> {
  const lease = await lock.lock();
  expect(await other.forceUnlock()).toBe(true);
  expect(await other.isLocked()).toBe(false);
  expect(await other.forceUnlock()).toBe(false);
  expect(isLockLost(await lease.unlock().catch((error: unknown) => error))).toBe(true);
}

/** While it is held and waited for: every key of this lock is in the right database and has the prefix. */
async function expectKeys(name: string, { redis: { db = 0, keyPrefix = "" } = {} }: Setting): Promise<void> {
  for (const [at, connection] of raw) {
    const keys = await scan(connection, name);
    if (at === db) expect(keys).not.toEqual([]);
    expect(keys.filter((key) => at !== db || !key.startsWith(keyPrefix))).toEqual([]);
  }
}

async function scan(redis: Redis, name: string): Promise<string[]> {
  const found: string[] = [];
  for await (const keys of redis.scanStream({ match: `*${name}*`, count: 1_000 })) found.push(...keys);
  return found;
}

async function join({ redis: options = {}, client, connect = ioredis6 }: Setting, test: TestContext) {
  const redis = connect(options);
  redis.on("error", () => {});
  const locks = createLockClient(redis, client);
  test.onTestFinished(async () => {
    await locks.close({ grace: 0 });
    redis.disconnect();
  });
  if (options.enableOfflineQueue === false && !options.lazyConnect) await once(redis as never, "ready");
  // A call that does not wait gives a connection that is still being made 500 ms: this one waits.
  await locks.lock(freshName("first")).withLock(() => {});
  return { redis, locks };
}

function rawDb(db: number): Redis {
  const redis = raw.get(db);
  if (redis === undefined) throw new Error(`No connection to database ${db}`);
  return redis;
}
