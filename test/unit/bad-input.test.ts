import { Cluster, Redis } from "ioredis";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLockClient, type Lock, type LockClient } from "../../src/index.ts";
import { freshName, Parties } from "../support/fixture.ts";

/** Every method takes anything here, as it does from JavaScript. */
type Loose<T> = {
  [K in keyof T]: T[K] extends (...args: never[]) => infer R ? (...args: unknown[]) => R : T[K];
};

const WAIT = "wait must be a whole number of milliseconds from 0 to 2^31-1, or Infinity";
const LEASE = "lease must be a whole number of milliseconds from 10 to 2^31-1";
const MAX_HOLD = "maxHold must be a whole number of milliseconds from 10 to 2^31-1, or Infinity";
const GRACE = "grace must be a whole number of milliseconds from 0 to 2^31-1";

/** A value that is no time in ms, how a message shows it, and the error that refuses it. */
const BAD_TIMES: [unknown, string, typeof TypeError | typeof RangeError][] = [
  [-1, "-1", RangeError],
  [1.5, "1.5", RangeError],
  [Number.NaN, "NaN", RangeError],
  [Number.NEGATIVE_INFINITY, "-Infinity", RangeError],
  [2 ** 31, "2147483648", RangeError],
  ["100", "'100'", TypeError],
  [null, "null", TypeError],
  [true, "true", TypeError],
  [100n, "100", TypeError],
  [[100], "an array", TypeError],
  [{}, "an object", TypeError],
];

// A connection that would connect with the first command: as long as it waits, nothing was sent.
let redis: Redis;
let locks: LockClient;
let lock: Loose<Lock>;

beforeEach(() => {
  redis = new Redis({ lazyConnect: true, port: 1, retryStrategy: null });
  locks = createLockClient(redis);
  lock = locks.lock("x") as unknown as Loose<Lock>;
});
afterEach(() => {
  expect(redis.status, "nothing was sent").toBe("wait");
});

/** The call is refused with exactly this error, whether it throws or rejects. */
async function refused(call: () => unknown, kind: typeof TypeError | typeof RangeError, message: string) {
  let error: unknown;
  try {
    await call();
  } catch (thrown) {
    error = thrown;
  }
  expect(String(error)).toBe(`${kind.name}: ${message}`);
  expect(error).toBeInstanceOf(kind);
}

describe("times", () => {
  it.each(BAD_TIMES)("%s is refused as a wait", async (value, shown, kind) => {
    const message = `Cannot lock 'x': ${WAIT}, received ${shown}`;
    // As the first argument an array or an object is taken for the options.
    if (typeof value !== "object" || value === null) await refused(() => lock.tryLock(value), kind, message);
    await refused(() => lock.tryLock({ wait: value }), kind, message);
    await refused(() => lock.lock({ wait: value }), kind, message);
    await refused(() => lock.withLock(() => 1, { wait: value }), kind, message);
    await refused(() => lock.withLock({ wait: value }, () => 1), kind, message);
  });

  it.each([...BAD_TIMES, [9, "9", RangeError], [Number.POSITIVE_INFINITY, "Infinity", RangeError]] as const)(
    "%s is refused as a lease",
    async (value, shown, kind) => {
      const message = `Cannot lock 'x': ${LEASE}, received ${shown}`;
      await refused(() => lock.tryLock(0, value), kind, message);
      await refused(() => lock.tryLock({ lease: value }), kind, message);
      await refused(() => lock.lock({ lease: value }), kind, message);
      await refused(() => lock.withLock(() => 1, { lease: value }), kind, message);
    },
  );

  it.each(BAD_TIMES)("%s is refused as a maxHold", (value, shown, kind) =>
    refused(() => lock.lock({ maxHold: value }), kind, `Cannot lock 'x': ${MAX_HOLD}, received ${shown}`),
  );

  it.each([...BAD_TIMES, [Number.POSITIVE_INFINITY, "Infinity", RangeError]] as const)(
    "%s is refused as a grace, and the client stays open",
    async (value, shown, kind) => {
      const message = `Cannot close the lock client: ${GRACE}, received ${shown}`;
      const dead = new Redis({ port: 1, lazyConnect: true, retryStrategy: null });
      dead.on("error", () => {});
      const other = createLockClient(dead);
      await refused(() => (other as unknown as Loose<LockClient>).close({ grace: value }), kind, message);
      // Open: it goes as far as the connection, which is dead.
      await expect(other.lock("x").tryLock()).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    },
  );
});

describe("arguments", () => {
  const options = "Cannot lock 'x': options must be an object, received";
  const noBody = "Cannot lock 'x': withLock takes a function, and options before or after it";
  const known = "known are wait, lease, watchdog, maxHold, minHold, signal, label";

  it.each<[string, () => unknown, string]>([
    ["lock(5)", () => lock.lock(5), `${options} 5`],
    ["lock(null)", () => lock.lock(null), `${options} null`],
    ["lock('1s')", () => lock.lock("1s"), `${options} '1s'`],
    ["lock([])", () => lock.lock([]), `${options} an array`],
    ["lock(body)", () => lock.lock(() => 1), `${options} a function`],
    ["tryLock([])", () => lock.tryLock([]), `${options} an array`],
    ["withLock(body, 5)", () => lock.withLock(() => 1, 5), `${options} 5`],
    ["withLock(body, null)", () => lock.withLock(() => 1, null), `${options} null`],
    ["withLock(null, body)", () => lock.withLock(null, () => 1), `${options} null`],
    ["withLock()", () => lock.withLock(), noBody],
    ["withLock(options)", () => lock.withLock({ wait: 5 }), noBody],
    ["withLock('work')", () => lock.withLock("work"), noBody],
    ["withLock(promise)", () => lock.withLock(Promise.resolve()), noBody],
    ["withLock(body, options, more)", () => lock.withLock(() => 1, {}, 5), noBody],
    ["lock(options, more)", () => lock.lock({}, 5), "Cannot lock 'x': lock takes one argument, the options"],
    [
      "tryLock(wait, lease, unit)",
      () => lock.tryLock(10, 60, "SECONDS"),
      "Cannot lock 'x': tryLock takes (wait, lease) in milliseconds; there is no time unit",
    ],
    [
      "tryLock(options, lease)",
      () => lock.tryLock({ wait: 10 }, 60),
      "Cannot lock 'x': tryLock takes (wait, lease) or (options)",
    ],
    [
      "an unknown option",
      () => lock.tryLock({ leaseTime: 5 }),
      `Cannot lock 'x': unknown option 'leaseTime'; ${known}`,
    ],
    [
      "an unknown option that is undefined",
      () => lock.lock({ timeout: undefined }),
      `Cannot lock 'x': unknown option 'timeout'; ${known}`,
    ],
    [
      "a watchdog that is a number",
      () => lock.lock({ watchdog: 1 }),
      "Cannot lock 'x': watchdog must be true or false, received 1",
    ],
    [
      "a watchdog that is null",
      () => lock.lock({ watchdog: null }),
      "Cannot lock 'x': watchdog must be true or false, received null",
    ],
    [
      "confirm of a call without a body",
      () => lock.lock({ confirm: true }),
      `Cannot lock 'x': unknown option 'confirm'; ${known}`,
    ],
    [
      "a confirm that is a number",
      () => lock.withLock(() => 1, { confirm: 1 }),
      "Cannot lock 'x': confirm must be true or false, received 1",
    ],
    [
      "a signal that is an object",
      () => lock.lock({ signal: {} }),
      "Cannot lock 'x': signal must be an AbortSignal, received an object",
    ],
    [
      "a controller for a signal",
      () => lock.lock({ signal: new AbortController() }),
      "Cannot lock 'x': signal must be an AbortSignal, received an object",
    ],
    [
      "a signal that is null",
      () => lock.tryLock({ signal: null }),
      "Cannot lock 'x': signal must be an AbortSignal, received null",
    ],
    [
      "scope(options)",
      () => (locks as unknown as Loose<LockClient>).scope({}),
      "Cannot open a scope: it takes a function",
    ],
    [
      "lock.unlock()",
      () => (lock as unknown as { unlock(): void }).unlock(),
      "Cannot unlock 'x': a lock has no unlock(); keep the lease that tryLock() or lock() gave, and call lease.unlock()",
    ],
  ])("%s is refused", (_, call, message) => refused(call, TypeError, message));

  // It has no own property that could be called unknown, and would be ignored: the wait could not be ended.
  it("a signal in the place of the options is refused", async () => {
    const { signal } = new AbortController();
    await refused(() => lock.lock(signal), TypeError, `${options} an AbortSignal`);
  });

  it("a name that would break the message is shown escaped and cut", async () => {
    const name = `a\n"b'\0${"é".repeat(200)}`;
    const error = await (locks.lock(name) as unknown as Loose<Lock>).lock(5).catch((error: Error) => error);
    expect((error as Error).message).toMatch(/^Cannot lock 'a\\n\\"b'\\u0000é{93}…': options must be/);
  });
});

describe("names", () => {
  it.each<[unknown, typeof TypeError | typeof RangeError, string]>([
    ["", RangeError, "name must be a non-empty string, received ''"],
    [undefined, TypeError, "name must be a string, received undefined"],
    [null, TypeError, "name must be a string, received null"],
    [42, TypeError, "name must be a string, received 42"],
    [["x"], TypeError, "name must be a string, received an array"],
    [Buffer.from("x"), TypeError, "name must be a string, received an object"],
    [new String("x"), TypeError, "name must be a string, received an object"],
    ["\ud83d", RangeError, "name must be a well-formed string, received '\\ud83d'"],
    ["a\udc00b", RangeError, "name must be a well-formed string, received 'a\\udc00b'"],
    ["\udc00\ud83d", RangeError, "name must be a well-formed string, received '\\udc00\\ud83d'"],
    [
      "x".repeat(513),
      RangeError,
      `name must be at most 512 bytes of UTF-8, received 513 bytes ('${"x".repeat(99)}…')`,
    ],
    [
      `x${"é".repeat(256)}`,
      RangeError,
      `name must be at most 512 bytes of UTF-8, received 513 bytes ('x${"é".repeat(98)}…')`,
    ],
  ])("%j is refused", async (name, kind, message) => {
    for (const method of ["lock", "fairLock", "redissonLock", "redissonFencedLock", "spinLock"] as const) {
      const make = locks[method].bind(locks) as (name: unknown) => Lock;
      await refused(() => make(name), kind, `Cannot create a lock: ${message}`);
    }
  });

  it.each(["x".repeat(512), "é".repeat(256), "🔒".repeat(128), " ", "{", "}{", "%7B", "a\0b", "a\r\nb"])(
    "%j is allowed",
    (name) => {
      expect(locks.lock(name).name).toBe(name);
    },
  );
});

describe("createLockClient", () => {
  const notRedis = "Cannot create a lock client: redis must be an ioredis connection, new Redis(…)";
  const create = createLockClient as (...args: unknown[]) => LockClient;

  it.each([undefined, null, "redis://127.0.0.1", 6379, {}, Redis, { evalsha() {} }])(
    "%s is no connection",
    (given) => refused(() => create(given), TypeError, notRedis),
  );

  it("a Cluster whose key prefix would spread the keys of one lock is refused", async () => {
    const cluster = new Cluster([{ host: "127.0.0.1", port: 1 }], { lazyConnect: true, keyPrefix: "a{}b:" });
    await refused(
      () => create(cluster),
      TypeError,
      "Cannot create a lock client: behind the keyPrefix 'a{}b:' the keys of one lock have different hash slots; use one without \"{}\"",
    );
    expect(cluster.status).toBe("wait");
  });

  it.each([
    ["", "a{b", "use a name without braces"],
    ["a{b:", "order", "the keyPrefix 'a{b:' must have no braces, or a whole tag"],
  ])("in Cluster, behind '%s', Redisson's lock '%s' is refused: %s", async (keyPrefix, name, cure) => {
    const cluster = new Cluster([{ host: "127.0.0.1", port: 1 }], { lazyConnect: true, keyPrefix });
    await refused(
      () => createLockClient(cluster).redissonLock(name),
      RangeError,
      `Cannot create a lock: in Cluster Redisson's keys of '${name}' have different hash slots; ${cure}`,
    );
  });

  const leaseTime = "leaseTime must be a whole number of milliseconds from 10 to 2^31-1";
  const grantWindow = "grantWindow must be a whole number of milliseconds from 10 to 2^31-1, or Infinity";
  const replyTimeout = "replyTimeout must be a whole number of milliseconds from 10 to 2^31-1";
  const localPasses = "localPasses must be a whole number from 0 to 1000";
  const linger = (most: number): string =>
    `linger must be a whole number of milliseconds from 0 to ${most} (half of grantWindow, of which 3000 count)`;
  const connection = 'connection must be "shared" or "own"';

  it.each<[unknown, typeof TypeError | typeof RangeError, string]>([
    [null, TypeError, "options must be an object, received null"],
    [[], TypeError, "options must be an object, received an array"],
    [30_000, TypeError, "options must be an object, received 30000"],
    [{ leaseTime: 9 }, RangeError, `${leaseTime}, received 9`],
    [{ leaseTime: Number.POSITIVE_INFINITY }, RangeError, `${leaseTime}, received Infinity`],
    [{ leaseTime: "30s" }, TypeError, `${leaseTime}, received '30s'`],
    [{ grantWindow: 0 }, RangeError, `${grantWindow}, received 0`],
    [{ grantWindow: null }, TypeError, `${grantWindow}, received null`],
    [{ replyTimeout: Number.POSITIVE_INFINITY }, RangeError, `${replyTimeout}, received Infinity`],
    [{ localPasses: -1 }, RangeError, `${localPasses}, received -1`],
    [{ localPasses: 1.5 }, RangeError, `${localPasses}, received 1.5`],
    [{ localPasses: 1_001 }, RangeError, `${localPasses}, received 1001`],
    [{ localPasses: "8" }, TypeError, `${localPasses}, received '8'`],
    [{ linger: 1_501 }, RangeError, `${linger(1_500)}, received 1501`],
    [{ linger: -1 }, RangeError, `${linger(1_500)}, received -1`],
    [{ linger: 0.5 }, RangeError, `${linger(1_500)}, received 0.5`],
    [{ linger: Number.POSITIVE_INFINITY }, RangeError, `${linger(1_500)}, received Infinity`],
    [{ linger: true }, TypeError, `${linger(1_500)}, received true`],
    [{ linger: 1_501, grantWindow: 60_000 }, RangeError, `${linger(1_500)}, received 1501`],
    [{ linger: 1_501, grantWindow: Number.POSITIVE_INFINITY }, RangeError, `${linger(1_500)}, received 1501`],
    [{ linger: 501, grantWindow: 1_001 }, RangeError, `${linger(500)}, received 501`],
    [
      { linger: 1, replicas: 1 },
      RangeError,
      "linger must be 0: a client with replicas keeps no lock, because they would not know it, received 1",
    ],
    [{ replicas: -1 }, RangeError, "replicas must be a whole number from 0 to 100, received -1"],
    [{ replicas: true }, TypeError, "replicas must be a whole number from 0 to 100, received true"],
    [
      { replicaTimeout: 9 },
      RangeError,
      "replicaTimeout must be a whole number of milliseconds from 10 to 2^31-1, received 9",
    ],
    [{ connection: "mine" }, TypeError, `${connection}, received 'mine'`],
    [{ connection: null }, TypeError, `${connection}, received null`],
    [
      { lease: 5 },
      TypeError,
      "unknown option 'lease'; known are leaseTime, replyTimeout, grantWindow, localPasses, linger, replicas, replicaTimeout, connection, scopes, deadlocks, label",
    ],
  ])("%j is refused", (options, kind, message) =>
    refused(() => create(redis, options), kind, `Cannot create a lock client: ${message}`),
  );
});

describe("linger", () => {
  const create = "Cannot create a lock: linger must be";

  it.each<[unknown, typeof TypeError | typeof RangeError, string]>([
    [501, RangeError, "501"],
    [-1, RangeError, "-1"],
    ["100", TypeError, "'100'"],
    [null, TypeError, "null"],
  ])("%s is refused by a lock", (linger, kind, shown) => {
    const client = createLockClient(redis, { grantWindow: 1_000 }) as unknown as Loose<LockClient>;
    const wanted = "a whole number of milliseconds from 0 to 500 (half of grantWindow, of which 3000 count)";
    return refused(() => client.lock("x", { linger }), kind, `${create} ${wanted}, received ${shown}`);
  });

  it("is refused with its reason where nothing is kept, and 0 is not", async () => {
    const replicated = createLockClient(redis, { replicas: 1 });
    const refusals: [LockClient, "lock" | "redissonLock" | "spinLock", string][] = [
      [replicated, "lock", "a client with replicas keeps no lock, because they would not know it"],
      [locks, "redissonLock", "a redissonLock is not kept, because Java could not ask for it"],
      [locks, "spinLock", "a spinLock is not kept, because nobody could ask for it"],
    ];
    for (const [client, kind, why] of refusals) {
      const make = (client as unknown as Loose<LockClient>)[kind].bind(client);
      await refused(() => make("x", { linger: 100 }), RangeError, `${create} 0: ${why}, received 100`);
      expect(make("x", { linger: 0 })).toMatchObject({ name: "x" });
    }
    const masters = [1, 2, 3].map((port) => new Redis({ lazyConnect: true, port, retryStrategy: null }));
    await refused(
      () => createLockClient(masters, { linger: 100 } as object),
      RangeError,
      "Cannot create a lock client: linger must be 0: a lock of several masters is not kept, received 100",
    );
  });

  it("is 0 where nothing was said, and nothing is counted", () => {
    expect(locks.stats()).toEqual({ kept: 0, takenAgain: 0, recalled: 0, recalledUnused: 0, lapsed: 0 });
  });
});

describe("a lease", () => {
  const parties = new Parties();
  afterAll(parties.close);

  it.each([...BAD_TIMES, [9, "9", RangeError], [Number.POSITIVE_INFINITY, "Infinity", RangeError]] as const)(
    "extend(%s) is refused before anything is sent",
    async (value, shown, kind) => {
      const { redis, locks } = await parties.join();
      const name = freshName();
      const lease = await locks.lock(name).lock();
      redis.disconnect(); // gone for good: what would be sent now is LOCK_UNAVAILABLE
      const extend = lease.extend as (ms: unknown) => Promise<void>;
      const message = `Cannot extend the lease of '${name}': ms must be a whole number of milliseconds from 10 to 2^31-1`;
      await refused(() => extend.call(lease, value), kind, `${message}, received ${shown}`);
      expect(lease.held).toBe(true);
    },
  );
});
