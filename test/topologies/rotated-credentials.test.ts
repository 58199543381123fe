import { Cluster } from "ioredis";
import { Cluster as Cluster5 } from "ioredis5";
import { createCluster } from "redis";
import { createCluster as createCluster5 } from "redis5";
import { afterAll, afterEach, beforeAll, it } from "vitest";
import { type ClusterLike, createLockClient, type NodeRedisLike } from "../../src/index.ts";
import { freshName } from "../support/fixture.ts";
import { staysQuiet } from "../support/quiet.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { addUser, type User } from "../support/servers/users.ts";
import { survivesCut } from "../support/survives-cut.ts";
import { until } from "../support/until.ts";

// The password of a Cluster's user changes, and so do the options of the application's object. Then
// every connection is closed.

staysQuiet();
let cluster: RedisCluster;
const undo: (() => unknown)[] = [];
/** A reconnect may take more tries than ioredis makes by default before it gives up a command. */
const PATIENT = { maxRetriesPerRequest: null };
beforeAll(async () => {
  cluster = await RedisCluster.launch();
});
afterEach(async () => {
  for (const one of undo.splice(0).reverse()) await one();
});
afterAll(() => cluster?.stop());

/** The application's object, and how it changes the password. */
type Open = (user: User) => {
  readonly redis: ClusterLike | NodeRedisLike;
  readonly change: (to: string) => void;
};

/** `where`: the options that the application changes. Version 6 itself reads those of nodes only. */
const onIoredis =
  (Library: typeof Cluster, where: "redisOptions" | "nodes"): Open =>
  (user) => {
    const redis = new Library([...(cluster.address.nodes ?? [])], { redisOptions: { ...user, ...PATIENT } });
    redis.on("error", () => {});
    undo.push(() => redis.disconnect());
    let current = user.password;
    redis.on("+node", (node) => {
      node.options.password = current;
    });
    const change = (password: string): void => {
      if (where === "redisOptions") Object.assign(redis.options.redisOptions ?? {}, { password });
      else current = password;
      if (where === "nodes") for (const { options } of redis.nodes()) options.password = password;
    };
    return { redis: redis as unknown as ClusterLike, change };
  };

const onNodeRedis =
  (create: typeof createCluster): Open =>
  (user) => {
    const rootNodes = (cluster.address.nodes ?? []).map((socket) => ({ socket }));
    const defaults = { ...user };
    const redis = create({ rootNodes, defaults });
    redis.on("error", () => {});
    redis.connect().catch(() => {});
    undo.push(() => redis.destroy());
    const change = (password: string): void => {
      defaults.password = password;
    };
    return { redis: redis as unknown as NodeRedisLike, change };
  };

it.each<[string, "shared" | "own", Open]>([
  ["ioredis 6", "own", onIoredis(Cluster, "redisOptions")],
  ["ioredis 6", "own", onIoredis(Cluster, "nodes")],
  ["ioredis 6", "shared", onIoredis(Cluster, "nodes")],
  ["ioredis 5", "own", onIoredis(Cluster5 as never, "redisOptions")],
  ["ioredis 5", "shared", onIoredis(Cluster5 as never, "nodes")],
  ["node-redis 6", "shared", onNodeRedis(createCluster)],
  ["node-redis 5", "shared", onNodeRedis(createCluster5 as never)],
])("%s, connection %s: a Cluster's locks survive a rotated password", async (_, connection, open) => {
  const user = await addUser(cluster, "~*", "&*", "+@all");
  const { redis, change } = open(user);
  const other = cluster.connect(PATIENT);
  undo.push(() => other.disconnect());
  const others = createLockClient(other as unknown as ClusterLike);
  undo.push(() => others.close({ grace: 0 }));
  await until(() => ("isOpen" in redis ? redis.isOpen : redis.status === "ready"));
  const locks = createLockClient(redis, { connection, leaseTime: 9_000 });
  undo.push(() => locks.close({ grace: 0 }));
  await survivesCut(locks, others, async () => {
    const next = freshName("password");
    change(next);
    for (const admin of await cluster.admins()) {
      await admin.acl("SETUSER", user.username, "resetpass", `>${next}`);
      await admin.client("KILL", "USER", user.username);
    }
  });
});
