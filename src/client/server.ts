import type { Settings } from "../api/options.ts";
import type { ClusterLike, RedisLike } from "../api/redis.ts";
import { ClusterSubscriber } from "../redis/cluster-subscriber.ts";
import type { Commands } from "../redis/commands.ts";
import { Replication } from "../redis/replication.ts";
import { ScriptRunner } from "../redis/script-runner.ts";
import { Subscriber } from "../redis/subscriber.ts";
import { whereabouts } from "../redis/trouble.ts";
import { duplicate, isCluster } from "../redis/types.ts";
import type { Parts } from "./base-client.ts";
import type { Located } from "./check/server.ts";

/** What runs the scripts of a client and carries its messages: a Redis, or the memory of a test. */
export interface Server extends Pick<Parts, "subscribe" | "closed"> {
  readonly redis: RedisLike | ClusterLike;
  readonly commands: Commands;
  readonly replication: Replication | null;
  /** What `check()` looks at. */
  readonly servers: () => readonly Located[];
}

/** A single server, a Sentinel group or a Cluster, on a connection of the caller's. */
export function redisServer(given: RedisLike | ClusterLike, settings: Settings): Server {
  const { connection, replicas, replicaTimeout, replyTimeout } = settings;
  const redis = connection === "own" ? duplicate(given) : given;
  const commands = new ScriptRunner(redis, replyTimeout);
  const replication = replicas > 0 ? new Replication(redis, replicas, replicaTimeout, replyTimeout) : null;
  return {
    redis,
    commands,
    replication,
    subscribe: (audience) =>
      isCluster(redis)
        ? new ClusterSubscriber(redis, audience, commands)
        : new Subscriber({ redis, isSharded: false, ...audience }, commands),
    servers: () =>
      isCluster(redis)
        ? redis.nodes("master").map((node) => ({ redis: node, whereabouts: () => whereabouts(node, null) }))
        : [{ redis, whereabouts: () => commands.troubles.whereabouts }],
    closed: () => {
      replication?.close();
      if (redis !== given) redis.disconnect();
    },
  };
}
