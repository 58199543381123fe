import { setImmediate as nextTurn } from "node:timers/promises";
import type { Redis } from "ioredis";
import { createCluster } from "redis";
import { createCluster as createCluster5 } from "redis5";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import {
  createLockClient,
  type LockClient,
  type LockClientOptions,
  type NodeRedisLike,
} from "../../src/index.ts";
import type { Link } from "../../src/redis/driver.ts";
import { linkTo } from "../../src/redis/drivers.ts";
import { nodeRedisLike } from "../support/carrier.ts";
import { Duet } from "../support/duet.ts";
import { freshName } from "../support/fixture.ts";
import { connectionIds } from "../support/leaks.ts";
import { nodeRedisAt } from "../support/node-redis.ts";
import { staysQuiet } from "../support/quiet.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import type { ClusterNode } from "../support/servers/cluster-node.ts";
import { SentinelGroup } from "../support/servers/sentinel.ts";
import { until } from "../support/until.ts";

// The locks of createCluster() and createSentinel() of node-redis survive what those of ioredis do,
// whatever node-redis itself makes of it: version 5 never looks for the primary of a Cluster again.

staysQuiet();

/** What `createSentinel` returns, as far as it is used here. */
interface Sentinel {
  readonly isOpen: boolean;
  getMasterNode(): object | undefined;
  listenerCount(event: string): number;
  use(body: () => Promise<void>): Promise<void>;
}

describe.each([6, 5] as const)("node-redis %d", (version) => {
  const create = (redis: Redis, options: LockClientOptions | undefined): LockClient =>
    createLockClient(nodeRedisLike(redis, version), options);

  describe("createCluster", () => {
    let cluster: RedisCluster;
    let duet: Duet;
    const closing: (() => void)[] = [];

    beforeAll(async () => {
      cluster = await RedisCluster.launch({ replicas: 1 });
    });
    beforeEach(async () => {
      duet = await Duet.of(() => cluster.connect(), { isCluster: true, create });
    });
    afterEach(async () => {
      for (const close of closing.splice(0)) close();
      await duet.end();
      await cluster.restore();
    });
    afterAll(() => cluster?.stop());

    it("the primary is killed: holder and waiter keep what they have, and messages arrive again", async () => {
      const { lock } = duet;
      const { held, waiting } = await duet.begin(await cluster.adminOf(lock.keys.lock));
      await cluster.killPrimaryOf(lock.keys.lock);
      await held.extend(40_000);
      expect(held.signal.aborted).toBe(false);
      await duet.handOn(held, waiting);
    });

    it("the primary is suspended: its replica is promoted, and the lock goes on", async () => {
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

    it("the slot moves: the waiter is granted the lock at its new node", async () => {
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

    it("the client serves locks of many slots at once", async () => {
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

    it("locks of other slots go on where no node has slot 0", async () => {
      const call = async (...words: [string, ...string[]]): Promise<void> => {
        for (const { admin } of cluster.nodes) await admin.call("CLUSTER", ...words).catch(() => {});
      };
      const cover = async (is: "yes" | "no"): Promise<void> => {
        for (const { admin } of cluster.nodes) await admin.config("SET", "cluster-require-full-coverage", is);
      };
      const owner = await cluster.primaryOf(0);
      await cover("no");
      await call("DELSLOTS", "0");
      try {
        const made = await connected();
        const locks = createLockClient(made as unknown as NodeRedisLike);
        await locks.lock(duet.lock.name).withLock(async () => {});
        await locks.close();
      } finally {
        await owner.admin.call("CLUSTER", "ADDSLOTS", "0");
        await cover("yes");
      }
    });

    it("its errors are printed where nobody of the application listens", async () => {
      const made = await connected();
      const locks = createLockClient(made as unknown as NodeRedisLike);
      await locks.lock(duet.lock.name).withLock(async () => {});
      const print = vi.spyOn(console, "error").mockImplementation(() => {});
      made.emit("error", new Error("heard"));
      expect(print).not.toHaveBeenCalled();
      made.removeListener("error", ignore);
      made.emit("error", new Error("unheard"));
      expect(print.mock.calls.map(([text]) => text)).toEqual(["[holdfast] Unhandled error event:"]);
      print.mockRestore();
      await locks.close();
      made.on("error", ignore);
    });

    it("a command that waits for a node fails when the link is closed", async () => {
      const made = make();
      const link = linkTo(made)?.open();
      const asked = link?.command(["PING"]);
      link?.close();
      await expect(asked).rejects.toThrow("The client is closed");
    });

    const ignore = (): void => {};
    const connected = async (): Promise<ReturnType<typeof createCluster>> => {
      const made = make();
      made.on("error", ignore);
      await made.connect();
      closing.push(() => made.destroy());
      return made;
    };
    const make = (): ReturnType<typeof createCluster> => {
      const rootNodes = cluster.nodes.map(({ server: { host, port } }) => ({ socket: { host, port } }));
      return (version === 6 ? createCluster : (createCluster5 as unknown as typeof createCluster))({
        rootNodes,
      });
    };

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

    it("the master is suspended: a replica is promoted, and the lock goes on", async () => {
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

    /** A Sentinel object, and its link. */
    const open = async (): Promise<{ made: Sentinel; link: Link; close(): void }> => {
      const redis = group.connect();
      const made = nodeRedisLike(redis, version) as unknown as Sentinel;
      await until(() => made.isOpen && made.getMasterNode());
      const link = linkTo(made);
      if (!link) throw new Error("it is no connection");
      return { made, link, close: () => redis.disconnect() };
    };
    const idOf = async (link: Link): Promise<number> => Number(await link.command(["CLIENT", "ID"]));

    it("a lost connection comes back while the application has the only client in use", async () => {
      const { made, link, close } = await open();
      const stop = link.on({ lost() {}, ready() {}, ended() {} });
      const id = await idOf(link);
      await made.use(async () => {
        await (await group.adminOf()).client("KILL", "ID", id);
        await until(async () => (await idOf(link).catch(() => id)) !== id);
      });
      stop();
      close();
    });

    it("leaves no listener and no connection behind, also where it is closed while it connects", async () => {
      const { made, link, close } = await open();
      const admin = await group.adminOf();
      const all = async (): Promise<number> => (await connectionIds(admin, "normal")).length;
      const listeners = (): number => made.listenerCount("topology-change");
      const before = await all();
      for (let turns = 0; turns < 20; turns++) {
        const own = link.open();
        for (let turn = 0; turn < turns; turn++) await nextTurn();
        own.close();
        expect(listeners()).toBe(0);
      }
      const last = link.open();
      await last.command(["PING"]);
      expect(listeners()).toBe(1);
      last.close();
      expect(listeners()).toBe(0);
      await until(async () => (await all()) === before);
      close();
    });

    it("ends with the object, a connection of its own too, and asks it no more", async () => {
      const { made, link, close } = await open();
      const admin = await group.adminOf();
      const own = link.open();
      const id = await idOf(own);
      const told: string[] = [];
      own.on({ lost: () => void told.push("lost"), ready() {}, ended: () => void told.push("ended") });
      const locks = createLockClient(made as unknown as NodeRedisLike, { connection: "own" });
      await locks.lock(duet.lock.name).withLock(async () => {});
      close();
      await until(() => !made.isOpen);
      expect(own.state).toBe("ended");
      await expect(own.command(["PING"])).rejects.toThrow("The client is closed");
      await expect(locks.lock(duet.lock.name).tryLock()).rejects.toThrow(
        "the connection to Redis Sentinel group was closed for good",
      );
      await locks.close({ grace: 0 });
      await until(async () => !(await connectionIds(admin, "normal")).includes(id));
      expect(told).toEqual(["lost", "ended"]);
      expect(made.listenerCount("topology-change")).toBe(0);
    });

    it("refuses replicas", async () => {
      const redis = group.connect();
      expect(() => createLockClient(nodeRedisLike(redis, version), { replicas: 1 })).toThrow(
        "use ioredis for a Sentinel group",
      );
      redis.disconnect();
    });
  });

  describe("createSentinel, without a subscription at its sentinels", () => {
    let group: SentinelGroup;
    let made: Deaf;

    beforeAll(async () => {
      group = await SentinelGroup.launch({ sentinels: 1 });
      made = nodeRedisAt(version, group.address) as unknown as Deaf;
      made.on("error", () => {});
      await made.connect();
    });
    afterAll(async () => {
      await made?.destroy();
      await group?.stop();
    });

    it("stays at the former master: the locks make it look for the new one", async () => {
      await deafen();
      const former = await group.primary();
      former.suspend();
      await until(async () => (await group.primary()) !== former);
      await group.restore();
      // Sentinel has hung up on it, and it has connected again.
      await until(() => made.getMasterNode());
      expect(made.getMasterNode()?.port).toBe(former.port);

      const locks = createLockClient(made as unknown as NodeRedisLike, { connection: "own" });
      const lease = await until(() =>
        locks
          .lock(freshName())
          .tryLock()
          .catch(() => null),
      );
      await lease.unlock();
      await locks.close();
      expect(made.getMasterNode()?.port).toBe((await group.primary()).port);
    });

    /**
     * Its subscription ends. The object then asks for the master again, and as the same sentinel
     * answers it subscribes no more.
     */
    const deafen = async (): Promise<void> => {
      const told: string[] = [];
      made.setTracer(told);
      const [sentinel] = group.sentinels;
      if (!sentinel) throw new Error("it has no sentinel");
      await group.admin(sentinel).call("CLIENT", "KILL", "TYPE", "pubsub");
      await until(() => told.includes("#connect: returning"));
      expect(await connectionIds(group.admin(sentinel), "pubsub")).toEqual([]);
    };
  });
});

/** What `createSentinel` returns, as far as it is used where it hears nothing. */
interface Deaf {
  on(event: "error", listener: () => void): void;
  connect(): Promise<unknown>;
  destroy(): Promise<unknown>;
  getMasterNode(): { port: number } | undefined;
  /** Its steps are pushed into this list. */
  setTracer(steps: string[]): void;
}
