import { Cluster } from "ioredis";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { type ClusterLike, createLockClient, type LockError } from "../../src/index.ts";
import { failure } from "../contract/observe.ts";
import { freshName } from "../support/fixture.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { addUser } from "../support/servers/users.ts";
import { until } from "../support/until.ts";

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await RedisCluster.launch();
});
afterAll(() => cluster?.stop());

it("no messages arrive from a Cluster: an error event names the server that refuses them", async () => {
  const user = await addUser(cluster, "~*", "&*", "+@all");
  const nodes = [...(cluster.address.nodes ?? [])];
  const redis = new Cluster(nodes, { redisOptions: { ...user } });
  const other = cluster.connect();
  onTestFinished(() => {
    redis.disconnect();
    other.disconnect();
  });
  await until(() => redis.status === "ready");
  const near = createLockClient(redis as unknown as ClusterLike);
  const far = createLockClient(other as unknown as ClusterLike);
  const told: LockError[] = [];
  near.on("error", (error) => told.push(error));
  const name = freshName();
  for (const admin of await cluster.admins()) await admin.acl("SETUSER", user.username, "-ssubscribe");
  const held = await far.lock(name).lock();
  const waiting = failure(near.lock(name).lock({ wait: 30_000 }));
  await until(() => told.length > 0, { timeout: 30_000 });
  const ports = nodes.map(({ port }) => port).join("|");
  expect(told[0]).toMatchObject({
    code: "NO_MESSAGES",
    message: expect.stringMatching(new RegExp(`from Redis at 127\\.0\\.0\\.1:(${ports}),.*NOPERM`)),
  });
  expect(await waiting).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  await held.unlock();
  await near.close();
  await far.close();
});
