import { Cluster, Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LockClient } from "../../src/index.ts";
import { createQuorumClient, type QuorumClient } from "../../src/quorum/index.ts";

// Connections that would connect with the first command: as long as they wait, nothing was sent.
let nodes: Redis[];
const lazy = (options: object = {}) =>
  new Redis({ lazyConnect: true, port: 1, retryStrategy: null, ...options });
const create = createQuorumClient as (...args: unknown[]) => QuorumClient;

beforeEach(() => {
  nodes = [lazy(), lazy(), lazy(), lazy()];
});
afterEach(() => {
  for (const node of nodes) expect(node.status, "nothing was sent").toBe("wait");
});

/** The call is refused with this error, whether it throws or rejects. */
async function refused(call: () => unknown, kind: typeof TypeError | typeof RangeError, message: string) {
  const error = await Promise.resolve()
    .then(call)
    .then(
      () => null,
      (thrown: unknown) => thrown,
    );
  expect(error).toBeInstanceOf(kind);
  expect(String(error)).toContain(message);
}

describe("masters of a quorum", () => {
  it("must be at least three", async () => {
    for (const count of [0, 1, 2])
      await refused(
        () => create(nodes.slice(0, count)),
        RangeError,
        `at least 3, of which one may fail, received ${count}`,
      );
    expect(create(nodes.slice(0, 3)).id).toContain(`${process.pid}`);
    expect(create(nodes).id).toContain(`${process.pid}`); // an even number is allowed
  });

  it.each([
    ["a URL", () => "redis://127.0.0.1", "connection 3 of 4 must be an ioredis connection"],
    ["nothing", () => null, "connection 3 of 4 must be an ioredis connection"],
    ["a Cluster", () => new Cluster([{ port: 1 }], { lazyConnect: true }), "connection 3 of 4 is a Cluster"],
    [
      "a Sentinel group",
      () => lazy({ sentinels: [{ port: 1 }], name: "x" }),
      "connection 3 of 4 follows Sentinel",
    ],
    [
      "one of them twice",
      () => nodes[0],
      "connection 3 of 4 is the same as connection 1: it would vote twice",
    ],
  ])("are not %s", async (_, make, message) => {
    const [first, second, , last] = nodes;
    await refused(() => create([first, second, make(), last]), TypeError, message);
  });

  it.each([
    [{ grantWindow: 1_000 }, TypeError, "unknown option 'grantWindow'"],
    [{ replicas: 1 }, TypeError, "unknown option 'replicas'"],
    [{ nodeTimeout: 9 }, RangeError, "nodeTimeout must be a whole number of milliseconds from 10 to 2^31-1"],
    [{ retryDelay: "1s" }, TypeError, "retryDelay must be"],
    [{ longestLease: 0 }, RangeError, "longestLease must be"],
    [
      { leaseTime: 70_000 },
      RangeError,
      "leaseTime must be a whole number of milliseconds from 10 to 60000 (longestLease)",
    ],
    [{ restartDelay: -1 }, RangeError, "restartDelay must be"],
    [
      { restartDelay: 60_000 },
      RangeError,
      "restartDelay must be 0, or at least 60602 (longestLease and the drift)",
    ],
    [{ connection: "mine" }, TypeError, 'connection must be "shared" or "own"'],
  ] as const)("with %j are refused", (options, kind, message) =>
    refused(() => create(nodes, options), kind, message),
  );
});

describe("leases of a quorum", () => {
  it("are refused if longer than longestLease", async () => {
    const lock = create(nodes, { longestLease: 5_000 }).lock("x");
    const message =
      "lease must be a whole number of milliseconds from 10 to 5000 (longestLease), received 5001";
    await refused(() => lock.tryLock(0, 5_001), RangeError, message);
    await refused(() => lock.lock({ lease: 5_001 }), RangeError, message);
    await refused(() => lock.withLock({ lease: 5_001 }, () => {}), RangeError, message);
  });

  it("are cut to longestLease if no number is given", () => {
    expect(create(nodes, { longestLease: 5_000 }).id).not.toBe("");
  });
});

describe("a QuorumClient", () => {
  it("has what a quorum can do, and nothing else", () => {
    const locks = createQuorumClient(nodes);
    // @ts-expect-error a quorum has no queue to be fair by
    expect(locks.fairLock).toBeUndefined();
    // @ts-expect-error Redisson knows no quorum
    expect(locks.redissonLock).toBeUndefined();
  });

  it("refuses features that need more than a majority, and gives the reason", async () => {
    const locks = create(nodes) as unknown as LockClient;
    await refused(
      () => locks.semaphore("x"),
      TypeError,
      "a majority of several masters does not bound how many",
    );
    await refused(() => locks.readWriteLock("x"), TypeError, "agree on none");
    await refused(() => locks.election("x"), TypeError, "must be stored in one place");
    for (const call of [
      () => locks.remember("x", { keep: 1_000 }, () => {}),
      () => locks.remembered("x"),
      () => locks.forget("x"),
      () => locks.stopRun("x"),
    ])
      await refused(call, TypeError, "each could remember another");
    await refused(
      () => locks.runOnce("x", { every: 1_000 }, () => {}),
      TypeError,
      "an interval counts by the clock of one server",
    );
  });
});
