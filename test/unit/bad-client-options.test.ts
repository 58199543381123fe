import { EventEmitter } from "node:events";
import { Cluster, Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLockClient, type LockClient } from "../../src/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { redissonLock } from "../../src/redisson.ts";
import { lockOf } from "../support/permit.ts";
import { type Loose, refused } from "./refused.ts";

// A connection that would connect with the first command: as long as it waits, nothing was sent.
let redis: Redis;
let locks: LockClient;

beforeEach(() => {
  redis = new Redis({ lazyConnect: true, port: 1, retryStrategy: null });
  locks = createLockClient(redis);
});
afterEach(() => {
  expect(redis.status, "nothing was sent").toBe("wait");
});

describe("createLockClient", () => {
  const notRedis =
    "Cannot create a lock client: redis must be an ioredis connection, new Redis(…), or a node-redis client, createClient(…), of the packages ioredis and redis, received ";
  const instead = "; for tests without a Redis there is createTestLocks() of holdfast/testing";
  const create = createLockClient as (...args: unknown[]) => LockClient;

  class OldClient extends EventEmitter {
    readonly isReady = true;
    readonly options = { password: "secret" };
    connect() {}
    unref() {}
    duplicate() {}
    sendCommand() {}
    subscribe() {}
    unsubscribe() {}
  }
  const spied = Object.assign(Object.create(new Redis({ lazyConnect: true, password: "secret" })), {
    duplicate: undefined,
  });

  it.each<[unknown, string]>([
    [undefined, "undefined"],
    [null, "null"],
    [6379, "6379"],
    ["redis://:secret@127.0.0.1", "a string"],
    [{}, "an object"],
    [{ host: "127.0.0.1", password: "secret" }, "an object"],
    [new URL("redis://:secret@127.0.0.1"), "an object of class 'URL'"],
    [Redis, "the function or class 'Redis'"],
    [() => redis, "a function"],
    [{ evalsha() {} }, "an object"],
    [new EventEmitter(), "an object"],
    [spied, "an object, which lacks 'duplicate' of an ioredis connection (5.11 or later)"],
    [
      new OldClient(),
      "an object of class 'OldClient', which lacks 'destroy', 'sSubscribe', 'sUnsubscribe' of a node-redis client (5 or later)",
    ],
  ])("%s is no connection, and the error says what came", (given, came) =>
    refused(() => create(given), TypeError, `${notRedis}${came}${instead}`),
  );

  it.each([
    ["redis://127.0.0.1", /of the packages ioredis and redis, received a string; for tests/],
    [Promise.resolve(), /: redis must be a connection, received a Promise: await it first$/],
  ])("%s is no connection, and the message says what it is", (given, message) =>
    expect(() => create(given)).toThrow(message),
  );

  it.each(["status", "options", "callBuffer", "sendCommand", "listenerCount", "disconnect"])(
    "an object with all methods of a connection but %s is none, as a mock of ioredis",
    (missing) =>
      refused(
        () => create(Object.create(redis, { [missing]: {} })),
        TypeError,
        `${notRedis}an object, which lacks '${missing}' of an ioredis connection (5.11 or later)${instead}`,
      ),
  );

  it("a Cluster whose key prefix would spread the keys of one lock is refused", async () => {
    const cluster = new Cluster([{ host: "127.0.0.1", port: 1 }], { lazyConnect: true, keyPrefix: "a{}b:" });
    await refused(
      () => create(cluster),
      TypeError,
      "Cannot create a lock client: with the prefix 'a{}b:' the keys of one lock have different hash slots; use one without \"{}\"",
    );
    expect(cluster.status).toBe("wait");
  });

  it.each([
    ["", "a{b", "use a name without braces"],
    ["a{b:", "order", "the prefix 'a{b:' must have no braces, or a whole tag"],
  ])(
    "in Cluster, with the prefix '%s', Redisson's lock '%s' is refused: %s",
    async (keyPrefix, name, cure) => {
      const cluster = new Cluster([{ host: "127.0.0.1", port: 1 }], { lazyConnect: true, keyPrefix });
      await refused(
        () => redissonLock(createLockClient(cluster), name),
        RangeError,
        `Cannot create a lock: in Cluster Redisson's keys of '${name}' have different hash slots; ${cure}`,
      );
    },
  );

  const leaseTime = "leaseTime must be a whole number of milliseconds from 10 to 2^31-1";
  const grantWindow = "grantWindow must be a whole number of milliseconds from 10 to 2^31-1, or Infinity";
  const replyTimeout = "replyTimeout must be a whole number of milliseconds from 10 to 2^31-1";
  const localHandoffs = "localHandoffs must be a whole number from 0 to 1000";
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
    [{ localHandoffs: -1 }, RangeError, `${localHandoffs}, received -1`],
    [{ localHandoffs: 1.5 }, RangeError, `${localHandoffs}, received 1.5`],
    [{ localHandoffs: 1_001 }, RangeError, `${localHandoffs}, received 1001`],
    [{ localHandoffs: "8" }, TypeError, `${localHandoffs}, received '8'`],
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
      "linger must be 0: a client with replicas caches no lock, because they would not know it, received 1",
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
      "unknown option 'lease': it belongs to the call: lock(), tryLock() or withLock(); a client has `leaseTime`",
    ],
    [
      { leases: 5 },
      TypeError,
      "unknown option 'leases'; known are leaseTime, replyTimeout, grantWindow, localHandoffs, linger, replicas, replicaTimeout, connection, reentrant, deadlocks, label, prefix",
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

  it("is refused with its reason by kinds that cache nothing, and 0 is not", async () => {
    const replicated = createLockClient(redis, { replicas: 1 });
    const refusals: [LockClient, "lock" | "redissonLock" | "spinLock", string][] = [
      [replicated, "lock", "a client with replicas caches no lock, because they would not know it"],
      [locks, "redissonLock", "a redissonLock is not cached, because Java could not recall it"],
      [locks, "spinLock", "a spinLock is not cached, because no process could recall it"],
    ];
    for (const [client, kind, why] of refusals) {
      const make = (name: string, options: object) => lockOf(client, kind, name, options);
      await refused(() => make("x", { linger: 100 }), RangeError, `${create} 0: ${why}, received 100`);
      expect(make("x", { linger: 0 })).toMatchObject({ name: "x" });
    }
    const masters = [1, 2, 3].map((port) => new Redis({ lazyConnect: true, port, retryStrategy: null }));
    await refused(
      () => createQuorumClient(masters, { linger: 100 } as object),
      RangeError,
      "Cannot create a lock client: linger must be 0: a lock of several masters is not cached, received 100",
    );
  });

  it("is 0 by default, and nothing is counted", () => {
    expect(locks.stats()).toEqual({
      waiting: 0,
      kept: 0,
      takenAgain: 0,
      recalled: 0,
      recalledUnused: 0,
      lapsed: 0,
    });
  });
});
