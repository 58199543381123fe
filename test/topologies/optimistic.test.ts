import { once } from "node:events";
import type { Cluster, Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { optimistic, type Transaction } from "../../src/optimistic/index.ts";
import { freshName } from "../support/fixture.ts";
import { trackUnhandled } from "../support/leaks.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { topologies } from "../support/servers/kinds.ts";
import { SentinelGroup } from "../support/servers/sentinel.ts";
import type { Topology } from "../support/servers/topology.ts";
import { describeOnWanted } from "../support/servers/wanted.ts";

// Transactions on every way to have Redis; slots that move and primaries that fall while a body runs.

const unhandled = trackUnhandled();
afterAll(async () => {
  await unhandled.assertNone().finally(unhandled.stop);
});

const add =
  (key: string, n = 1) =>
  async (tx: Transaction<Redis | Cluster>) => {
    const value = Number(await tx.redis.get(key));
    tx.multi.set(key, value + n);
    return tx;
  };

describeOnWanted(topologies, ({ launch }) => {
  let topology: Topology;
  beforeAll(async () => {
    topology = await launch();
  });
  afterAll(() => topology.stop());

  it("20 callers on two connections: none overwrites another", async () => {
    const key = freshName("{stock}");
    const [one, two] = [topology.connect(), topology.connect()];
    const call = (_: unknown, n: number) =>
      optimistic(n % 2 ? one : two, [key, `${key}:2`], add(key), { retries: 1_000 });
    const all = await Promise.all(Array.from({ length: 20 }, call));
    expect(all.map(({ replies }) => replies)).toEqual(all.map(() => ["OK"]));
    expect(await one.get(key)).toBe("20");
    const ends = [one, two].map((connection) => once(connection, "end"));
    for (const connection of [one, two]) connection.disconnect();
    await Promise.all(ends);
    const error = await optimistic(one, [key], add(key)).catch((error: unknown) => error);
    expect(error).toMatchObject({ code: "TRANSACTION_FAILED", executed: "nothing" });
  });

  it("a connection that has not connected yet is used", async () => {
    const key = freshName("stock");
    const redis = topology.connect({ lazyConnect: true });
    const tx = await optimistic(redis, [key], add(key, 5));
    expect([tx.replies, await redis.get(key)]).toEqual([["OK"], "5"]);
  });
});

describe("Cluster", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await RedisCluster.launch({ replicas: 1 });
  }, 120_000);
  afterAll(() => cluster.stop());

  /** A move of the key's slot to another primary. */
  async function moveOf(key: string) {
    const owner = await cluster.primaryOf(key);
    const target = (await cluster.primaries()).find((node) => node !== owner);
    if (target === undefined) throw new Error("There is one primary only");
    return cluster.startMove(await cluster.slotOf(key), target);
  }

  it("refuses keys of several slots, and names those that are elsewhere", async () => {
    const redis = cluster.connect();
    const call = optimistic(redis, ["{a}1", "{a}2", "{b}1", "c"], () => expect.fail("runs"));
    await expect(call).rejects.toThrow(RangeError);
    await expect(call).rejects.toThrow("'{b}1', 'c' have another than '{a}1'");
  });

  it("refuses writes to another slot than that of the keys, and does nothing", async () => {
    const key = freshName("{a}");
    for (const keyPrefix of ["", "app:", "{c}"]) {
      const redis = cluster.connect({ keyPrefix });
      const elsewhere = keyPrefix === "{c}" ? "{b}elsewhere" : "{a}here";
      await optimistic(redis, [key], (tx) => void tx.multi.set(key, 1).set(elsewhere, 1));
      expect(await redis.get(key)).toBe("1");
      if (keyPrefix === "{c}") continue; // there is one slot for all
      const call = optimistic(redis, [key], (tx) => void tx.multi.set(key, 2).set("{b}elsewhere", 1));
      await expect(call).rejects.toThrow("Cannot set in the body of a transaction: in Cluster its keys");
      expect(await redis.get(key)).toBe("1");
    }
  });

  it.each([
    ["is there", true],
    ["is missing", false],
  ])(
    "the slot moves while the body runs, and its key %s: done once, at the new place",
    async (_, isThere) => {
      const key = freshName("stock");
      const redis = cluster.connect();
      if (isThere) await redis.set(key, 10);
      let runs = 0;
      await optimistic(redis, [key], async (tx) => {
        const value = Number(await tx.redis.get(key));
        if (runs++ === 0) {
          const move = await moveOf(key);
          await move.open();
          await move.keys();
          await move.close();
          await (await cluster.primaryOf(key)).admin.set(key, 20);
        }
        tx.multi.set(key, value + 1);
      });
      expect(runs).toBeGreaterThan(1);
      expect(await redis.get(key)).toBe("21");
    },
  );

  it("the slot moves during a body that writes nothing: its read of a missing key is not confirmed", async () => {
    const key = freshName("stock");
    const redis = cluster.connect();
    let runs = 0;
    const seen = await optimistic(redis, [key], async (tx) => {
      const value = await tx.redis.get(key);
      if (runs++ === 0) {
        const move = await moveOf(key);
        await move.open();
        await move.keys();
        await move.close();
        await (await cluster.primaryOf(key)).admin.set(key, "made there");
      }
      return value;
    });
    expect(seen).toBe("made there");
  });

  it("a slot that is half moved: it waits for the rest", async () => {
    const key = freshName("stock");
    const redis = cluster.connect();
    await redis.set(key, 10);
    const move = await moveOf(key);
    await move.open();
    await move.keys(); // ASK from now on
    const done = optimistic(redis, [key], add(key));
    await move.close();
    await done;
    expect(await redis.get(key)).toBe("11");
  });

  it("the primary is replaced while the body runs: done once, at the new one", async () => {
    const key = freshName("stock");
    const redis = cluster.connect();
    await redis.set(key, 10);
    let runs = 0;
    await optimistic(redis, [key], async (tx) => {
      const value = Number(await tx.redis.get(key));
      if (runs++ === 0) {
        await cluster.failOver(key); // the old one is still there, and keeps the connection
        await (await cluster.adminOf(key)).set(key, 20);
      }
      tx.multi.set(key, value + 1);
    });
    expect(runs).toBeGreaterThan(1);
    expect(await redis.get(key)).toBe("21");
  }, 60_000);
});

describe("Sentinel", () => {
  it("a failover while the body runs: done once, at the new primary", async () => {
    const group = await SentinelGroup.launch();
    try {
      const key = freshName("stock");
      const redis = group.connect();
      await redis.set(key, 10);
      let runs = 0;
      await optimistic(redis, [key], async (tx) => {
        const value = Number(await tx.redis.get(key));
        if (runs++ === 0) {
          await group.killPrimary();
          await (await group.adminOf(key)).set(key, 20);
        }
        tx.multi.set(key, value + 1);
      });
      expect(runs).toBeGreaterThan(1);
      expect(await (await group.adminOf(key)).get(key)).toBe("21");
    } finally {
      await group.stop();
    }
  }, 120_000);
});
