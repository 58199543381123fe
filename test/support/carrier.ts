import type { Cluster, Redis } from "ioredis";
import { createCluster as createCluster6, createSentinel as createSentinel6 } from "redis";
import { createCluster as createCluster5, createSentinel as createSentinel5 } from "redis5";
import type { NodeRedisLike } from "../../src/index.ts";
import { openNodeRedis } from "./node-redis.ts";
import { until } from "./until.ts";

type Made = NodeRedisLike & { destroy(): unknown };

/**
 * What carries the locks of a party: its ioredis connection, or, with HOLDFAST_DRIVER=node-redis in
 * the environment (node-redis5 for version 5), a client of node-redis to the same place, which is
 * closed with that connection.
 */
export function carrier<R extends Redis | Cluster>(redis: R): R | NodeRedisLike {
  const { HOLDFAST_DRIVER: driver = "ioredis" } = process.env;
  if (driver === "ioredis" || redis.options.lazyConnect) return redis;
  const known = carriers.get(redis);
  if (known) return known;
  const made = nodeRedisLike(redis, driver === "node-redis5" ? 5 : 6);
  carriers.set(redis, made);
  return made;
}

/** A client of node-redis to the same place as a connection of ioredis, which is closed with that one. */
export function nodeRedisLike(redis: Redis | Cluster, version: 5 | 6): Made {
  const made = likeness(redis, version);
  const close = async (): Promise<void> => {
    if (made.isOpen) await made.destroy();
  };
  // A Cluster says "close" where it is disconnected while it connects.
  redis.once("end", () => void close().catch(() => {}));
  return made;
}

const carriers = new WeakMap<object, Made>();

/** What carries the locks of a party with this connection, if that is another one. */
export const carrierOf = (connection: unknown): unknown =>
  (typeof connection === "object" && connection !== null && carriers.get(connection)) || connection;

/** Resolves when what carries the locks of a party is connected. */
export async function carried(redis: Redis | Cluster): Promise<void> {
  const made = carriers.get(redis) as (Made & { isReady?: boolean }) | undefined;
  // A Cluster of version 5 says only that it is open.
  if (made) await until(() => made.isReady ?? made.isOpen, { what: "the node-redis client to be connected" });
}

const socket = { reconnectStrategy: () => 20 };

function likeness(redis: Redis | Cluster, version: 5 | 6): Made {
  if (redis.isCluster) {
    const { options } = redis as Cluster;
    const { startupNodes } = redis as unknown as { startupNodes: { host: string; port: number }[] };
    const { username, password } = options.redisOptions ?? {};
    const create = (version === 5 ? createCluster5 : createCluster6) as typeof createCluster6;
    const cluster = create({
      rootNodes: startupNodes.map(({ host, port }) => ({ socket: { host, port } })),
      defaults: { socket, ...(username && { username }), ...(password && { password }) },
      ...(options.natMap && {
        nodeAddressMap: options.natMap as Record<string, { host: string; port: number }>,
      }),
    });
    return opened(cluster as never);
  }
  const { host, port, username, password, db, keyPrefix, sentinels, name, natMap } = (redis as Redis).options;
  const who = { ...(username && { username }), ...(password && { password }), ...(db && { database: db }) };
  if (!sentinels)
    return openNodeRedis(version, {
      ...(host && { host }),
      ...(port && { port }),
      ...(keyPrefix && { keyPrefix }),
      ...who,
    }) as unknown as Made;
  const create = (version === 5 ? createSentinel5 : createSentinel6) as typeof createSentinel6;
  const sentinel = create({
    name: name ?? "",
    sentinelRootNodes: sentinels as { host: string; port: number }[],
    nodeClientOptions: { socket, ...who },
    ...(natMap && { nodeAddressMap: natMap as Record<string, { host: string; port: number }> }),
  });
  return opened(sentinel as never);
}

function opened(made: Made): Made {
  made.on("error", () => {});
  made.connect().catch(() => {});
  return made;
}
