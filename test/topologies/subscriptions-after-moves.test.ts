import { setTimeout as delay } from "node:timers/promises";
import type { Cluster } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { CLAIM_AFTER } from "../../src/defaults.ts";
import { createLockClient, type LockClient } from "../../src/index.ts";
import { freshName } from "../support/fixture.ts";
import { staysQuiet } from "../support/quiet.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import type { ClusterNode } from "../support/servers/cluster-node.ts";
import { until } from "../support/until.ts";

// Slots change hands under holders, waiters and idle clients, and nobody is cut off.

staysQuiet();
let cluster: RedisCluster;
const clients: LockClient[] = [];

beforeAll(async () => {
  cluster = await RedisCluster.launch({ replicas: 1 });
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close({ grace: 0 })));
});
afterAll(() => cluster?.stop());

describe.each(["ioredis 5", "ioredis 6, RESP2", "ioredis 6, RESP3"] as const)("%s", (driver) => {
  const join = async (): Promise<LockClient> => {
    const redis = cluster.connect({ driver }) as Cluster;
    await until(() => redis.status === "ready");
    const client = createLockClient(redis);
    clients.push(client);
    return client;
  };
  const slotOf = (name: string): Promise<number> => cluster.slotOf(`holdfast:{${name}}`);

  /**
   * Somebody holds it, three others wait; `disturb` happens; then it is released. How many were
   * inside at a time?
   */
  async function crowd(
    name: string,
    disturb: () => Promise<unknown>,
  ): Promise<{ most: number; tokens: number[] }> {
    const holder = await join();
    const held = await holder.lock(name).lock();
    let inside = 0;
    let most = 0;
    const tokens = [held.token];
    const waiting = await Promise.all([1, 2, 3].map(join)).then((all) =>
      all.map((client) =>
        client.lock(name).withLock(async (lease) => {
          most = Math.max(most, ++inside);
          tokens.push(lease.token);
          await delay(3 * CLAIM_AFTER); // a grant that was none shows itself when it is claimed
          lease.assertHeld();
          inside--;
        }),
      ),
    );
    await until(async () => (await holder.lock(name).inspect()).waiters?.length === 3);
    // A waiter that is subscribed at what has become a replica is not counted there, and skipped:
    // it must hear of no grant.
    const admin = await cluster.adminOf(`holdfast:{${name}}`);
    const entries = await admin.zrange(`holdfast:{${name}}:queue`, 0, "-1");
    expect(entries.filter((entry) => !/^1 \d+ \d+ \S+$/.test(entry))).toEqual([]);
    await disturb();
    await held.unlock();
    await Promise.all(waiting);
    return { most, tokens };
  }

  it("one at a time after a failover that keeps all connections", async () => {
    const name = freshName();
    const slot = await slotOf(name);
    const { most, tokens } = await crowd(name, () => cluster.failOver(slot));
    expect(most).toBe(1);
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
  });

  it("one at a time after the slot has moved, and the next wake-ups come by message", async () => {
    const name = freshName();
    const slot = await slotOf(name);
    const move = async (): Promise<void> => {
      const from = await cluster.primaryOf(slot);
      const to = (await cluster.primaries()).find((node) => node !== from) as ClusterNode;
      await cluster.migrateSlot(slot, to);
    };
    expect((await crowd(name, move)).most).toBe(1);
    const [mine, theirs] = [await join(), await join()].map((client) => client.lock(name));
    for (let i = 0; i < 2; i++) {
      const held = await mine?.lock();
      const next = theirs?.lock();
      await until(async () => (await mine?.inspect())?.waiters?.length === 1);
      const asked = performance.now();
      await held?.unlock();
      await (await next)?.unlock();
      // the next look would come after 1.1 s at the earliest
      expect(performance.now() - asked).toBeLessThan(350);
      if (i === 0) await move();
    }
  });

  it("an idle client whose slot moves sends nothing", async () => {
    const name = freshName();
    const slot = await slotOf(name);
    const [mine, theirs] = [await join(), await join()].map((client) => client.lock(name));
    const held = await mine?.lock();
    const next = theirs?.lock();
    await until(async () => (await mine?.inspect())?.waiters?.length === 1);
    await held?.unlock();
    await (await next)?.unlock();
    const from = await cluster.primaryOf(slot);
    const subscribes = async (): Promise<number> =>
      Number(/cmdstat_ssubscribe:calls=(\d+)/.exec(await from.admin.info("commandstats"))?.[1] ?? 0) +
      Number(
        /cmdstat_ssubscribe:.*rejected_calls=(\d+)/.exec(await from.admin.info("commandstats"))?.[1] ?? 0,
      );
    const before = await subscribes();
    const to = (await cluster.primaries()).find((node) => node !== from) as ClusterNode;
    await cluster.migrateSlot(slot, to);
    // A client that asks again and again would have done it hundreds of times by now.
    for (let i = 0; i < 50; i++) await from.admin.ping();
    expect((await subscribes()) - before).toBeLessThanOrEqual(2);
  });
});
