import { Redis } from "ioredis";
import * as redis6 from "redis";
import * as redis5 from "redis5";
import { describe, expect, it } from "vitest";
import { fencedSet } from "../../src/fencing/index.ts";
import { createLockClient, type NodeRedisLike } from "../../src/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { linkTo } from "../../src/redis/drivers.ts";
import { isReply } from "../../src/redis/node-redis/client.ts";

// What each version returns has the type that createLockClient takes.
const sentinels = { name: "main", sentinelRootNodes: [] };
[
  redis6.createClient(),
  redis6.createCluster({ rootNodes: [] }),
  redis6.createSentinel(sentinels),
  redis5.createClient(),
  redis5.createCluster({ rootNodes: [] }),
  redis5.createSentinel(sentinels),
] satisfies NodeRedisLike[];

// A connection is known by what it can do: an application may have any copy of a library.

const create = createLockClient as (redis: unknown) => unknown;
const quorum = createQuorumClient as (masters: unknown) => unknown;

describe.each([
  ["redis 6", redis6],
  ["redis 5", redis5 as unknown as typeof redis6],
] as const)("%s", (_, { createClient, createClientPool, createCluster, createSentinel }) => {
  const client = createClient();
  const rootNodes = [{ url: "redis://user:secret@127.0.0.1:7000" }, { socket: { host: "::1", port: 7001 } }];
  const cluster = createCluster({ rootNodes });
  const sentinel = createSentinel({ name: "main", sentinelRootNodes: [{ host: "127.0.0.1", port: 26379 }] });

  it("createClient, also with other command options, is recognized as a server", () => {
    for (const one of [client, client.withCommandOptions({}), client.duplicate()]) {
      const link = linkTo(one);
      expect([link?.library, link?.kind, link?.name]).toEqual(["node-redis", "server", "localhost:6379"]);
      expect([link?.state, link?.status]).toEqual(["away", "wait"]);
    }
    expect(linkTo(client)).toBe(linkTo(client));
    const far = createClient({ url: "rediss://user:secret@[::1]:6380/2" });
    expect([linkTo(far)?.name, linkTo(far)?.isTls]).toEqual(["[::1]:6380", true]);
    expect(linkTo(createClient({ socket: { path: "/run/redis.sock", tls: false } }))?.name).toBe(
      "/run/redis.sock",
    );
  });

  it("createCluster is recognized as a Cluster, and its message has no password", () => {
    const link = linkTo(cluster);
    expect([link?.library, link?.kind]).toEqual(["node-redis", "cluster"]);
    expect(link?.name).toBe("Cluster of 127.0.0.1:7000, [::1]:7001");
  });

  it("createSentinel is recognized as a Sentinel group", () => {
    const link = linkTo(sentinel);
    expect([link?.library, link?.kind, link?.name]).toEqual(["node-redis", "sentinel", "Sentinel group"]);
  });

  it("a pool is refused, with the reason", () => {
    expect(() => create(createClientPool())).toThrow(
      new TypeError(
        "Cannot create a lock client: redis must be one connection, and a pool of node-redis sends each command on another one: use createClient(…)",
      ),
    );
  });

  it("an unconnected client is reported at once, and nothing is sent", async () => {
    for (const one of [client, cluster, sentinel]) {
      const locks = createLockClient(one as never);
      await expect(locks.lock("a").tryLock()).rejects.toMatchObject({
        code: "LOCK_UNAVAILABLE",
        message: expect.stringContaining("await its connect() before its locks are used"),
      });
      await locks.close({ grace: 0 });
      expect(one.isOpen).toBe(false);
    }
  });

  it("a quorum takes clients, and no Cluster", () => {
    expect(() => quorum([client, cluster, createClient()])).toThrow("connection 2 of 3 is a Cluster");
    expect(() => quorum([client, {}, createClient()])).toThrow(
      "connection 2 of 3 must be an ioredis connection",
    );
  });
});

it("an error of Redis is recognized by its class, or by its first word", () => {
  class ErrorReply extends Error {}
  class Renamed extends ErrorReply {}
  const known = [new Renamed("my own words"), new Error("NOSCRIPT No matching script"), new Error("ERR x")];
  expect(known.map(isReply)).toEqual([true, true, true]);
  expect(known.map(({ name }) => name)).toEqual(Array(3).fill("ReplyError"));
  const others = [
    "Socket closed unexpectedly",
    "connect ECONNREFUSED 127.0.0.1:1",
    "The queue is full",
    "Disconnects client",
    "A word",
  ].map((text) => new Error(text));
  const system = Object.assign(new Error("EPIPE"), { code: "EPIPE" });
  for (const error of [...others, system]) expect([isReply(error), error.name]).toEqual([false, "Error"]);
});

it.each([
  ["nothing", null],
  ["a URL", "redis://127.0.0.1"],
  ["a class", Redis],
  ["a mock of a few methods", { get() {}, set() {}, isOpen: true, isReady: true, sendCommand() {} }],
])("%s is no connection: the message names both libraries, and the tests' client", async (_, given) => {
  expect(linkTo(given)).toBeNull();
  const told =
    /an ioredis connection, new Redis\(…\), or a node-redis client, createClient\(…\), of the packages ioredis and redis, received \w.*; .* createTestLocks\(\) of holdfast\/testing/;
  expect(() => create(given)).toThrow(told);
  await expect(fencedSet(given as never, "key", "value", { fence: 1, remember: 1_000 })).rejects.toThrow(
    told,
  );
});
