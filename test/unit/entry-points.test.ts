import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import * as fencing from "../../src/fencing/index.ts";
import * as holdfast from "../../src/index.ts";
import * as optimistic from "../../src/optimistic/index.ts";
import * as quorum from "../../src/quorum/index.ts";
import { redissonFencedLock, redissonLock } from "../../src/redisson.ts";
import { spinLock } from "../../src/spin.ts";
import { createTestLocks } from "../../src/tools/testing/index.ts";

// What makes a lock of a client by a function beside it, and what old names say.

const { createLockClient } = holdfast;
const lazy = () => new Redis({ lazyConnect: true, port: 1, retryStrategy: null });
let redis: Redis;
let locks: holdfast.LockClient;

beforeEach(() => {
  redis = lazy();
  locks = createLockClient(redis);
});
afterEach(() => {
  expect(redis.status, "nothing was sent").toBe("wait");
});

type Loose = (...args: unknown[]) => unknown;

it("each entry point has its own names, and holdfast has the errors of all", () => {
  expect(Object.keys(quorum)).toEqual(["createQuorumClient"]);
  expect(Object.keys(fencing).sort()).toEqual(["fencedEval", "fencedSet"]);
  expect(Object.keys(optimistic)).toEqual(["optimistic"]);
  const values = Object.keys(holdfast).filter((name) => !name.endsWith("Error"));
  expect(values.sort()).toEqual(["createLockClient", "isLockLost"]);
  for (const name of ["StaleTokenError", "FencedWriteError", "ConflictError", "TransactionError"])
    expect(Object.keys(holdfast)).toContain(name);
});

describe.each([
  ["redissonLock", redissonLock, "redissonLock(locks, name, options) from holdfast/redisson"],
  ["redissonFencedLock", redissonFencedLock, "redissonFencedLock(locks, name) from holdfast/redisson"],
  ["spinLock", spinLock, "spinLock(locks, name, options) from holdfast/spin"],
] as const)("%s", (name, make, now) => {
  it("as a method of a client names its new place, and is in no type", () => {
    // @ts-expect-error
    const typed = (locks: holdfast.LockClient) => locks[name];
    for (const client of [locks, createTestLocks()])
      expect(() => (typed(client) as Loose)("order:42")).toThrow(
        new TypeError(`Cannot create a lock: locks.${name}() is ${now} now`),
      );
    expect(Object.keys(locks)).not.toContain(name);
  });

  it("names the client that it takes", async () => {
    const several = quorum.createQuorumClient([lazy(), lazy(), lazy()]);
    const standIn = { lock: () => null, multiLock: () => null, close: async () => {} };
    const takes = `Cannot create a lock: ${name}(locks, name) takes a client of createLockClient(), `;
    const refused: [unknown, string][] = [
      [several, "and this one is of createQuorumClient(), whose locks are all of one kind"],
      [redis, "received a Redis connection: give it to createLockClient() first"],
      [
        standIn,
        "and this one is a stand-in, or was made by another copy of holdfast: `npm ls holdfast` shows all copies",
      ],
      ["order:42", "received 'order:42'"],
      [undefined, "received undefined"],
      [null, "received null"],
      [{}, "received an object"],
    ];
    for (const [client, why] of refused)
      expect(() => (make as Loose)(client, "order:42")).toThrow(new TypeError(takes + why));
    await several.close();
  });

  it("is a lock of a test client too, and of all that share its memory", async () => {
    const here = createTestLocks();
    const there = here.test.another();
    const lease = await make(here, "order:42").lock();
    expect(await make(there, "order:42").tryLock()).toBe(null);
    const waiting = make(there, "order:42").lock();
    await lease.unlock();
    expect((await waiting).held).toBe(true);
    await Promise.all([here, there].map((client) => client.close({ grace: 0 })));
  });
});

describe("several masters", () => {
  it("are refused by createLockClient, which names what takes them", () => {
    const masters = [lazy(), lazy(), lazy()];
    for (const given of [masters, masters.slice(1), []])
      expect(() => (createLockClient as Loose)(given, { scopes: 1 })).toThrow(
        new TypeError(
          "Cannot create a lock client: createLockClient takes one connection; for several masters it is createQuorumClient(masters) from holdfast/quorum",
        ),
      );
  });

  it.each([
    ["one connection", lazy(), "received one connection: for one server it is createLockClient(redis)"],
    ["a URL", "redis://127.0.0.1", "received 'redis://127.0.0.1'"],
    ["nothing", undefined, "received undefined"],
  ])("are not %s", (_, given, received) => {
    expect(() => (quorum.createQuorumClient as Loose)(given)).toThrow(
      new TypeError(`Cannot create a lock client: masters must be an array of connections, ${received}`),
    );
  });
});
