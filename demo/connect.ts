import { Redis } from "ioredis";
import type { createClient } from "redis";

export const DRIVERS = ["ioredis", "node-redis"] as const;
export type Driver = (typeof DRIVERS)[number];
export type NodeRedis = ReturnType<typeof createClient>;

/** What the shop needs of a connection, by whichever client it is made. */
export interface Connection {
  /** For the locks and the fenced writes, which take either. */
  readonly client: Redis | NodeRedis;
  get(key: string): Promise<string | null>;
  /** Sets a key and appends to a list, in one transaction. */
  setAndPush(key: string, value: string, list: string, item: string): Promise<unknown>;
  quit(): Promise<unknown>;
}

/**
 * Connects to Redis with ioredis.
 *
 * @param keyPrefix stands before all keys of this connection
 * @throws Error that says where Redis was expected, and why it cannot be reached
 */
export async function connect(url: string, keyPrefix = ""): Promise<Redis> {
  // A demo would rather fail than wait for a Redis that is gone: one more try for a command, not twenty.
  const redis = new Redis(url, { lazyConnect: true, keyPrefix, maxRetriesPerRequest: 1 });
  let trouble: Error | undefined;
  redis.on("error", (error) => {
    trouble = error;
  });
  try {
    await redis.connect();
    return redis;
  } catch (cause) {
    redis.disconnect();
    const { host, port } = redis.options;
    throw unreachable(`${host}:${port}`, trouble ?? cause);
  }
}

/** The same with node-redis, which is loaded only here: it takes its time. */
export async function connectNodeRedis(url: string): Promise<NodeRedis> {
  const { createClient } = await import("redis");
  const client = createClient({ url, socket: { reconnectStrategy: (tries) => (tries < 2 ? 50 : false) } });
  client.on("error", () => {});
  try {
    await client.connect();
    return client as NodeRedis;
  } catch (cause) {
    throw unreachable(new URL(url).host, cause);
  }
}

const unreachable = (where: string, cause: unknown): Error =>
  new Error(`Redis cannot be reached at ${where}: ${cause as Error}`, { cause });

export function overIoredis(redis: Redis): Connection {
  return {
    client: redis,
    get: (key) => redis.get(key),
    setAndPush: (key, value, list, item) => redis.multi().set(key, value).rpush(list, item).exec(),
    quit: () => redis.quit(),
  };
}

export function overNodeRedis(client: NodeRedis): Connection {
  return {
    client,
    get: (key) => client.get(key),
    setAndPush: (key, value, list, item) => client.multi().set(key, value).rPush(list, item).exec(),
    quit: () => client.close(),
  };
}
