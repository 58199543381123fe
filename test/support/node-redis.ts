import { createClient as createClient6 } from "redis";
import { createClient as createClient5 } from "redis5";

/** A client of node-redis 6; the methods that tests use are the same in 5. */
export type NodeRedisClient = ReturnType<typeof createClient6>;

export interface NodeRedisOptions {
  url?: string;
  host?: string;
  port?: number;
  username?: string;
  password?: string;
  database?: number;
  keyPrefix?: string;
  disableOfflineQueue?: boolean;
}

/** A client that connects, now and after every loss, and whose losses are what tests are about. */
export function openNodeRedis(version: 5 | 6, options: NodeRedisOptions): NodeRedisClient {
  const { host, port, ...others } = options;
  const where = others.url === undefined ? { host: host ?? "127.0.0.1", port: port ?? 6379 } : {};
  const socket = { ...where, reconnectStrategy: () => 20 };
  const client = first(version).duplicate({ ...others, socket }) as NodeRedisClient;
  client.on("error", () => {});
  client.connect().catch(() => {});
  return client;
}

const made = new Map<number, NodeRedisClient>();

/** Each `createClient` makes a class of all commands anew; a duplicate shares it. */
function first(version: 5 | 6): NodeRedisClient {
  const known = made.get(version);
  if (known) return known;
  const client = ((version === 5 ? createClient5 : createClient6) as typeof createClient6)();
  made.set(version, client as NodeRedisClient);
  return client as NodeRedisClient;
}
