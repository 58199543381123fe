import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { fencedSet } from "../../src/fencing/index.ts";
import { createLockClient, type NodeRedisLike } from "../../src/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { spinLock } from "../../src/spin.ts";
import { launchServer } from "../../tools/redis/index.ts";
import { failure } from "../contract/observe.ts";
import { nodeRedisLike } from "../support/carrier.ts";
import { freshName } from "../support/fixture.ts";
import { present } from "../support/present.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { until } from "../support/until.ts";

// A connection for one server, at a node of a Cluster.

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await RedisCluster.launch();
});
afterAll(() => cluster.stop());

const CURE = /node of a Cluster: .*new Cluster\(…\) of ioredis.*createCluster\(…\) of node-redis/;

describe.each(["ioredis", "node-redis 5", "node-redis 6"] as const)("with %s", (driver) => {
  async function connect(port: number): Promise<Redis | NodeRedisLike> {
    const redis = new Redis({ port, retryStrategy: () => 20 });
    redis.on("error", () => {});
    onTestFinished(() => redis.disconnect());
    if (driver === "ioredis") return redis;
    const made = nodeRedisLike(redis, driver === "node-redis 5" ? 5 : 6);
    await until(() => (made as { isReady?: boolean }).isReady === true);
    return made;
  }

  async function clientAt(port: number) {
    const locks = createLockClient((await connect(port)) as Redis);
    onTestFinished(() => locks.close({ grace: 0 }));
    return locks;
  }

  const port = (): number => present(cluster.servers[0]).port;
  /** A name whose key another node has. */
  async function strayName(): Promise<string> {
    for (;;) {
      const name = freshName();
      if ((await cluster.primaryOf(name)).server.port !== port()) return name;
    }
  }

  it("CROSSSLOT: the error of a lock and check() say which connection to use", async () => {
    const locks = await clientAt(port());
    const name = freshName();
    const slots = locks.semaphore(name, { permits: 1 });
    for (const work of [
      () => locks.lock(name).tryLock(),
      () => locks.lock(name).lock(),
      () => locks.readWriteLock(name).read.lock(),
      () => slots.acquire(),
    ]) {
      const error = (await failure(work())) as Error;
      expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE" });
      expect(error.message).toMatch(CURE);
      expect(error.message).toContain("CROSSSLOT");
    }
    const { ok, problems } = await locks.check();
    expect(ok).toBe(false);
    expect(problems.join("\n")).toMatch(CURE);
  });

  it("MOVED and ASK: so does the error of a spinLock, and of a fenced write", async () => {
    const locks = await clientAt(port());
    const moved = (await failure(spinLock(locks, await strayName()).tryLock())) as Error;
    expect(moved.message).toMatch(CURE);
    expect(moved.message).toContain("MOVED");
    const name = freshName();
    const { server, admin } = await cluster.primaryOf(name);
    const other = present((await cluster.primaries()).find((one) => one.server.port !== server.port));
    const slot = await cluster.slotOf(name);
    await admin.call("CLUSTER", "SETSLOT", slot, "MIGRATING", other.id);
    onTestFinished(async () => void (await admin.call("CLUSTER", "SETSLOT", slot, "STABLE")));
    const asked = (await failure(spinLock(await clientAt(server.port), name).tryLock())) as Error;
    expect(asked.message).toMatch(CURE);
    expect(asked.message).toContain("ASK");
    const refused = (await failure(
      fencedSet((await connect(port())) as Redis, name, "value", { fence: 1 }),
    )) as Error;
    expect(refused).toMatchObject({ code: "FENCED_WRITE_FAILED" });
    expect(refused.message).toMatch(CURE);
  });

  it("CLUSTERDOWN: so does a node that has joined no Cluster yet", async () => {
    const alone = await launchServer({ args: ["--cluster-enabled", "yes"] });
    onTestFinished(() => alone.stop());
    const locks = await clientAt(alone.port);
    const error = (await failure(locks.lock(freshName()).tryLock())) as Error;
    expect(error.message).toMatch(CURE);
    expect(error.message).toContain("CLUSTERDOWN");
  });

  it("a quorum of such nodes says so for each", async () => {
    const nodes = await Promise.all(cluster.servers.map((server) => connect(server.port)));
    const locks = createQuorumClient(nodes as Redis[], { restartDelay: 0 });
    onTestFinished(() => locks.close({ grace: 0 }));
    const error = (await failure(locks.lock(freshName()).tryLock())) as Error;
    expect(error.message).toMatch(/node of a Cluster/);
  });
});
