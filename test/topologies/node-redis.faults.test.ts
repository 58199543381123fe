import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createLockClient, type LockClient, type LockClientOptions } from "../../src/index.ts";
import { nodeRedisLike } from "../support/carrier.ts";
import { Duet } from "../support/duet.ts";
import { connectionIds } from "../support/leaks.ts";
import { staysQuiet } from "../support/quiet.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import type { ClusterNode } from "../support/servers/cluster-node.ts";
import { SentinelGroup } from "../support/servers/sentinel.ts";
import { until } from "../support/until.ts";

// The locks of createCluster() and createSentinel() of node-redis survive what those of ioredis do,
// whatever node-redis itself makes of it: version 5 never looks for the primary of a Cluster again.

staysQuiet();

describe.each([6, 5] as const)("node-redis %d", (version) => {
  const create = (redis: Redis, options: LockClientOptions | undefined): LockClient =>
    createLockClient(nodeRedisLike(redis, version), options);

  describe("createCluster", () => {
    let cluster: RedisCluster;
    let duet: Duet;

    beforeAll(async () => {
      cluster = await RedisCluster.launch({ replicas: 1 });
    });
    beforeEach(async () => {
      duet = await Duet.of(() => cluster.connect(), { isCluster: true, create });
    });
    afterEach(async () => {
      await duet.end();
      await cluster.restore();
    });
    afterAll(() => cluster?.stop());

    it("the primary is killed: holder and waiter keep what they have, and messages come again", async () => {
      const { lock } = duet;
      const { held, waiting } = await duet.begin(await cluster.adminOf(lock.keys.lock));
      await cluster.killPrimaryOf(lock.keys.lock);
      await held.extend(40_000);
      expect(held.signal.aborted).toBe(false);
      await duet.handOn(held, waiting);
    });

    it("the primary stands still: its replica takes over, and the lock goes on", async () => {
      const { lock, holder } = duet;
      await duet.expectMessages();
      const frozen = await cluster.primaryOf(lock.keys.lock);
      const replica = await cluster.replicaOf(frozen);
      frozen.server.suspend();
      try {
        await until(async () => (await replica.admin.info("replication")).includes("role:master"));
        const lease = await until(() =>
          holder.locks
            .lock(lock.name)
            .lock({ wait: 5_000 })
            .catch(() => null),
        );
        await lease.unlock();
      } finally {
        frozen.server.resume();
      }
    });

    it("the slot moves: the waiter is told at its new home", async () => {
      const { lock } = duet;
      const { held, waiting } = await duet.begin();
      const slot = await cluster.slotOf(lock.keys.lock);
      const from = await cluster.primaryOf(slot);
      const to = (await cluster.primaries()).find((node) => node !== from) as ClusterNode;
      await cluster.migrateSlot(slot, to);
      await held.unlock();
      await (await waiting).unlock();
      await duet.expectMessages();
    });

    it("locks of many slots at once", async () => {
      const names = Array.from({ length: 50 }, (_, i) => `${duet.lock.name}:${i}`);
      const [mine, theirs] = [duet.holder.locks, duet.waiter.locks];
      const leases = await Promise.all(names.map((name) => mine.lock(name).lock()));
      const next = names.map((name) => theirs.lock(name).lock());
      await until(async () => {
        const seen = await Promise.all(names.map((name) => mine.lock(name).inspect()));
        return seen.every(({ waiters }) => waiters?.length === 1);
      });
      await Promise.all(leases.map((lease) => lease.unlock()));
      for (const lease of await Promise.all(next)) await lease.unlock();
    });

    it("leaves no connection behind, and ends with the caller's object", async () => {
      await duet.expectMessages();
      const all = async (): Promise<number> => {
        const lists = await Promise.all(
          cluster.nodes.flatMap(({ admin }) => [
            connectionIds(admin, "normal"),
            connectionIds(admin, "pubsub"),
          ]),
        );
        return lists.flat().length;
      };
      const redis = cluster.connect();
      await redis.ping();
      const made = nodeRedisLike(redis, version);
      await until(() => made.isOpen);
      // Both sides open connections when they are needed.
      const locks = createLockClient(made);
      await locks.lock(duet.lock.name).withLock(async () => {});
      await locks.close();
      const before = await all();
      const again = createLockClient(made);
      await again.lock(duet.lock.name).withLock(async () => {});
      await again.close();
      await until(async () => (await all()) <= before);

      const last = createLockClient(made);
      await last.lock(duet.lock.name).withLock(async () => {});
      redis.disconnect();
      await until(() => !made.isOpen);
      await expect(last.lock(duet.lock.name).tryLock()).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
      await last.close({ grace: 0 });
    });

    it("refuses replicas", async () => {
      const redis = cluster.connect();
      expect(() => createLockClient(nodeRedisLike(redis, version), { replicas: 1 })).toThrow(
        "Cannot create a lock client: replicas needs a connection of its own to each master, which node-redis opens for a single server only; use ioredis for a Cluster",
      );
      redis.disconnect();
    });
  });

  describe("createSentinel", () => {
    let group: SentinelGroup;
    let duet: Duet;

    beforeAll(async () => {
      group = await SentinelGroup.launch();
    });
    beforeEach(async () => {
      duet = await Duet.of(() => group.connect(), { create });
    });
    afterEach(async () => {
      await duet.end();
      await group.restore();
    });
    afterAll(() => group?.stop());

    it.each([
      ["the master is killed", () => group.killPrimary()],
      ["SENTINEL FAILOVER", () => group.failover()],
    ] as const)("%s: holder and waiter keep what they have", async (_, failOver) => {
      const { held, waiting } = await duet.begin(await group.adminOf());
      await failOver();
      await until(() =>
        held.extend(40_000).then(
          () => true,
          () => false,
        ),
      );
      await duet.handOn(held, waiting);
    });

    it("the master stands still: a replica takes over, and the lock goes on", async () => {
      const { lock, holder } = duet;
      await duet.expectMessages();
      const frozen = await group.primary();
      frozen.suspend();
      try {
        await until(async () => (await group.primary()) !== frozen);
        const lease = await until(() =>
          holder.locks
            .lock(lock.name)
            .lock({ wait: 5_000 })
            .catch(() => null),
        );
        await lease.unlock();
      } finally {
        frozen.resume();
      }
    });

    it("refuses replicas", async () => {
      const redis = group.connect();
      expect(() => createLockClient(nodeRedisLike(redis, version), { replicas: 1 })).toThrow(
        "use ioredis for a Sentinel group",
      );
      redis.disconnect();
    });
  });
});
