import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import type { Cluster, Redis, RedisOptions } from "ioredis";
import type { NodeRedisLike } from "../../src/index.ts";
import { type Made, nodeRedisAt } from "./node-redis.ts";
import { until } from "./until.ts";

/**
 * The library that carries the locks of the tests: "node-redis", "node-redis5", or by default
 * ioredis.
 */
const { HOLDFAST_DRIVER: driver = "ioredis" } = process.env;
export const onNodeRedis = driver !== "ioredis";
/** The version of node-redis; null: it is ioredis. */
export const nodeRedisVersion = onNodeRedis ? (driver === "node-redis5" ? 5 : 6) : null;

/**
 * The connection that carries a party's locks: its ioredis connection, or, with
 * HOLDFAST_DRIVER=node-redis in the environment (node-redis5 for version 5), a client of node-redis
 * to the same place, which is closed with that connection.
 */
export function carrier<R extends Redis | Cluster>(redis: R): R | NodeRedisLike {
  if (!onNodeRedis || redis.options.lazyConnect) return redis;
  const known = carriers.get(redis);
  if (known) return known;
  const made = nodeRedisLike(redis, nodeRedisVersion ?? 6);
  carriers.set(redis, made);
  if (!redis.isCluster && !(redis as Redis).options.sentinels) standIn(redis as Redis, made);
  return made;
}

/**
 * Tests use their connection to check on, or to break, the one that carries the locks. So these
 * actions apply to the carrier too: PING, which is answered after all commands sent before it, and
 * a reconnect.
 */
function standIn(redis: Redis, made: Made): void {
  const ping = redis.ping.bind(redis) as () => Promise<"PONG">;
  const disconnect = redis.disconnect.bind(redis);
  const pingBoth = async (): Promise<"PONG"> => {
    const answers = [
      ping(),
      made.isOpen && (made as unknown as PlainClient).sendCommand(["PING"]).catch(() => {}),
    ];
    return (await Promise.all(answers))[0] as "PONG";
  };
  Object.assign(redis, {
    ping: pingBoth,
    disconnect(reconnect = false) {
      if (reconnect) socketOf(redis)?.destroy();
      disconnect(reconnect);
    },
  });
}

interface PlainClient {
  sendCommand(words: string[]): Promise<unknown>;
}

/**
 * The connection whose socket is being created: also at each reconnect, which runs in the context
 * of the first connect.
 */
const connecting = new AsyncLocalStorage<object>();
const sockets = new WeakMap<object, Socket>();
subscribe("net.client.socket", (message) => {
  const made = connecting.getStore();
  if (made) sockets.set(made, (message as { socket: Socket }).socket);
});

/** The socket on which the commands of a party with this connection are sent. */
export function socketOf(redis: Redis): Socket | undefined {
  const made = carriers.get(redis);
  return made ? sockets.get(made) : (redis as unknown as { stream: Socket }).stream;
}

/** A client of node-redis to the same place as an ioredis connection, which is closed with it. */
export function nodeRedisLike(redis: Redis | Cluster, version: 5 | 6): Made {
  const made = likeness(redis, version);
  const close = async (): Promise<void> => {
    if (made.isOpen) await made.destroy();
  };
  // A Cluster says "close" if it is disconnected while it connects.
  redis.once("end", () => void close().catch(() => {}));
  return made;
}

const carriers = new WeakMap<object, Made>();

/** The carrier of the locks of a party with this connection, if it is another connection. */
export const carrierOf = (connection: unknown): unknown =>
  (typeof connection === "object" && connection !== null && carriers.get(connection)) || connection;

/** Resolves when the carrier of a party's locks is connected. */
export async function carried(redis: Redis | Cluster): Promise<void> {
  const made = carriers.get(redis) as (Made & { isReady?: boolean }) | undefined;
  // A Cluster of version 5 only reports that it is open.
  if (made) await until(() => made.isReady ?? made.isOpen, { what: "the node-redis client to be connected" });
}

/** Do commands fail when the connection is lost? node-redis has one option for it. */
const fails = ({
  autoResendUnfulfilledCommands,
  maxRetriesPerRequest,
  enableOfflineQueue,
}: RedisOptions): boolean =>
  autoResendUnfulfilledCommands === false || maxRetriesPerRequest === 0 || enableOfflineQueue === false;

function likeness(connection: Redis | Cluster, version: 5 | 6): Made {
  if (connection.isCluster) {
    const { redisOptions = {}, natMap } = (connection as Cluster).options;
    const { startupNodes: nodes } = connection as unknown as {
      startupNodes: { host: string; port: number }[];
    };
    return opened(
      nodeRedisAt(version, { redis: redisOptions, nodes, ...(natMap && { natMap: natMap as Doors }) }),
    );
  }
  const { natMap, ...redis } = (connection as Redis).options;
  return opened(
    nodeRedisAt(
      version,
      { redis, ...(natMap && { natMap: natMap as Doors }) },
      {
        ...(fails(redis) && { disableOfflineQueue: true }),
        reconnectStrategy: (tries) => redis.retryStrategy?.(tries + 1) ?? false,
      },
    ),
  );
}

type Doors = Record<string, { host: string; port: number }>;

function opened(made: Made): Made {
  made.on("error", () => {});
  connecting.run(made, () => made.connect().catch(() => {}));
  return made;
}
