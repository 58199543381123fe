import type { Redis } from "ioredis";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { createLockClient } from "../../src/index.ts";
import { createLockUI, observe } from "../../src/tools/ui/index.ts";
import { nodeRedisLike } from "../support/carrier.ts";
import { freshName } from "../support/fixture.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { openConnection } from "../support/servers/connection.ts";
import { Standalone } from "../support/servers/standalone.ts";
import { until } from "../support/until.ts";

// The page and `observe()` on the connections of both libraries, to one server and to a Cluster.

describe.each([
  ["one server", () => Standalone.launch()],
  ["a Cluster", () => RedisCluster.launch()],
] as const)("%s", (_, launch) => {
  const launched = launch();
  afterAll(async () => (await launched).stop());

  // Version 5 of node-redis has no `keyPrefix`.
  it.each([
    ["ioredis", "page:", (redis: Redis) => redis],
    ["node-redis 6", "page:", (redis: Redis) => nodeRedisLike(redis, 6)],
    ["node-redis 5", "", (redis: Redis) => nodeRedisLike(redis, 5)],
  ] as const)("%s: what one process tells of its waits is read by the page", async (_, keyPrefix, given) => {
    const topology = await launched;
    const redis = openConnection(topology.address, { keyPrefix }) as Redis;
    await redis.ping();
    const connection = given(redis);
    const locks = createLockClient(connection);
    const ui = createLockUI({ locks, redis: connection, authorize: () => true });
    const stop = observe(locks, connection);
    onTestFinished(async () => {
      stop();
      ui.close();
      await locks.close({ grace: 0 });
      redis.disconnect();
    });
    const name = freshName();
    await using held = await locks.lock(name).lock();
    await locks.outside(() => locks.lock(name).tryLock(20));
    expect(held.held).toBe(true);
    const state = async (view: string): Promise<string> =>
      (await ui.fetch(new Request(`http://127.0.0.1/locks?part=state&view=${view}`))).text();
    await until(async () => (await state("heat")).includes(name), { what: "the wait on the page" });
    expect(JSON.parse(await state("blocked"))).toMatchObject({ trouble: null });
  });
});

it("refuse what is no connection", () => {
  const none = {} as Redis;
  expect(() => observe({} as never, none)).toThrow(/redis must be an ioredis connection, new Redis/);
});
