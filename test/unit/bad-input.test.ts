import { Redis } from "ioredis";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLockClient, type Lock, type LockClient } from "../../src/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { lockOf } from "../support/permit.ts";
import { type Loose, refused } from "./refused.ts";

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

describe("times", () => {
  it.each(BAD_TIMES)("%s is refused as a wait", async (value, shown, kind) => {
    const message = `Cannot lock 'x': ${WAIT}, received ${shown}`;
    // As the first argument an array or an object is taken for the options.
    if (typeof value !== "object" || value === null) await refused(() => lock.tryLock(value), kind, message);
    await refused(() => lock.tryLock({ wait: value }), kind, message);
    await refused(() => lock.lock({ wait: value }), kind, message);
    await refused(() => lock.withLock({ wait: value }, () => 1), kind, message);
    await refused(() => lock.withLock({ wait: value }, () => 1), kind, message);
  });

  it.each([...BAD_TIMES, [9, "9", RangeError], [Number.POSITIVE_INFINITY, "Infinity", RangeError]] as const)(
    "%s is refused as a lease",
    async (value, shown, kind) => {
      const message = `Cannot lock 'x': ${LEASE}, received ${shown}`;
      await refused(() => lock.tryLock(0, value), kind, message);
      await refused(() => lock.tryLock({ lease: value }), kind, message);
      await refused(() => lock.lock({ lease: value }), kind, message);
      await refused(() => lock.withLock({ lease: value }, () => 1), kind, message);
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
  const noBody = "Cannot lock 'x': withLock takes (body) or (options, body)";
  const swapped =
    "Cannot lock 'x': withLock takes the options before the function: (body) or (options, body)";
  const known = "known are wait, lease, watchdog, maxHold, signal, label, reentrant";

  it.each<[string, () => unknown, string]>([
    ["lock(5)", () => lock.lock(5), `${options} 5`],
    ["lock(null)", () => lock.lock(null), `${options} null`],
    ["lock('1s')", () => lock.lock("1s"), `${options} '1s'`],
    ["lock([])", () => lock.lock([]), `${options} an array`],
    ["lock(body)", () => lock.lock(() => 1), `${options} a function`],
    ["tryLock([])", () => lock.tryLock([]), `${options} an array`],
    ["withLock(5, body)", () => lock.withLock(5, () => 1), `${options} 5`],
    ["withLock(body, options)", () => lock.withLock(...[() => 1, { wait: 5 }]), swapped],
    ["withLock(null, body)", () => lock.withLock(null, () => 1), `${options} null`],
    ["withLock()", () => lock.withLock(), noBody],
    ["withLock(options)", () => lock.withLock({ wait: 5 }), noBody],
    ["withLock('work')", () => lock.withLock("work"), noBody],
    ["withLock(promise)", () => lock.withLock(Promise.resolve()), noBody],
    ["withLock(options, body, more)", () => lock.withLock({}, 5, () => 1), noBody],
    [
      "minHold",
      () => lock.lock({ minHold: 5 }),
      "Cannot lock 'x': unknown option 'minHold': it is gone: `locks.runOnce()` runs a job once per interval",
    ],
    [
      "reentrant: 1",
      () => lock.lock({ reentrant: 1 }),
      "Cannot lock 'x': reentrant must be true or false, received 1",
    ],
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
      "Cannot lock 'x': unknown option 'timeout': how long a call waits is `wait`",
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
      () => lock.withLock({ confirm: 1 }, () => 1),
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
    expect((error as Error).message).toMatch(/^Cannot lock 'a\\u000a"b\\'\\u0000é{82}…': options must be/);
  });
});

describe("events", () => {
  const known =
    "event must be one of acquire, wait, deadlock, giveup, release, recall, renew, lost, exposed, error";

  // Thrown and not rejected: nobody awaits a listener, and a rejection would end the process.
  it.each(["on", "once"] as const)("%s() of an unknown event is refused at once", (method) => {
    const masters = [1, 2, 3].map((port) => new Redis({ lazyConnect: true, port, retryStrategy: null }));
    for (const client of [locks, createQuorumClient(masters)]) {
      const add = (client as unknown as Loose<LockClient>)[method].bind(client);
      const message = `Cannot add a listener: ${known}, received`;
      expect(() => add("acqire", () => {})).toThrow(new TypeError(`${message} 'acqire'`));
      expect(() => add("constructor", () => {})).toThrow(new TypeError(`${message} 'constructor'`));
      expect(() => add(Symbol.iterator, () => {})).toThrow(TypeError);
    }
    expect(() => (locks as unknown as Loose<LockClient>).on("lost", 5)).toThrow(TypeError);
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
      const make = lockOf.bind(null, locks, method) as (name: unknown) => Lock;
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
