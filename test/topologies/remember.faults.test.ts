import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createLockClient, type LockClientOptions } from "../../src/index.ts";
import { Keys } from "../../src/redis/keys.ts";
import { nodeRedisLike } from "../support/carrier.ts";
import { inStep } from "../support/duet.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { staysQuiet } from "../support/quiet.ts";
import { running } from "../support/result-runs.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import type { Connection } from "../support/servers/connection.ts";
import { SentinelGroup } from "../support/servers/sentinel.ts";
import { until } from "../support/until.ts";

// The primary is replaced during a run, with the run's keys: its result is that of all callers.

staysQuiet();
const parties = new Parties();
let cluster: RedisCluster;
let group: SentinelGroup;
beforeAll(async () => {
  cluster = await RedisCluster.launch({ replicas: 1 });
  group = await SentinelGroup.launch();
});
afterEach(async () => {
  await parties.close();
  await cluster.restore();
  await group.restore();
});
afterAll(async () => {
  await cluster?.stop();
  await group?.stop();
});

interface Topology {
  readonly connect: () => Connection;
  readonly primaryOf: (key: string) => Promise<Redis>;
  readonly failOver: (key: string) => Promise<unknown>;
}
const inCluster = { connect: () => cluster.connect(), primaryOf: (key: string) => cluster.adminOf(key) };
const TOPOLOGIES: [string, Topology][] = [
  ["Cluster, and the primary is killed", { ...inCluster, failOver: (key) => cluster.killPrimaryOf(key) }],
  ["Cluster, and CLUSTER FAILOVER", { ...inCluster, failOver: (key) => cluster.failOver(key) }],
  [
    "Sentinel, and the primary is killed",
    {
      connect: () => group.connect(),
      primaryOf: () => group.adminOf(),
      failOver: () => group.killPrimary(),
    },
  ],
];

describe.each(["ioredis", "node-redis"])("with %s", (library) => {
  const create = (redis: Redis, client: LockClientOptions) =>
    createLockClient(library === "ioredis" ? redis : nodeRedisLike(redis, 6), client);

  it.each(TOPOLOGIES)("in %s: the caller that waits and new ones have the result", async (_, topology) => {
    const { connect, primaryOf, failOver } = topology;
    const near = (await parties.join({ connect, create })).locks.on("error", () => {});
    const far = (await parties.join({ connect, create })).locks.on("error", () => {});
    const [name, keep] = [freshName("result"), 60_000];
    const keys = new Keys("", false).ofRemembered(name);
    const first = await running(near, name);
    const second = far.remember(name, { keep }, () => expect.unreachable());
    const primary = await primaryOf(keys.lock);
    await until(() => primary.exists(keys.queue));
    await inStep(primary, `${keys.lock}:written`);
    await failOver(keys.lock);
    first.ran(1);
    const { token } = (await first.ended) as { token: number };
    expect(await second).toMatchObject({ value: 1, ran: false, token });
    expect(await far.remembered(name)).toMatchObject({ value: 1, token });
    expect(await far.forget(name)).toBe(true);
    expect(await near.remember(name, { keep }, () => 2)).toMatchObject({ value: 2, ran: true });
  });
});
