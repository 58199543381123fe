import { createRequire } from "node:module";
import type * as NodeRedis6 from "redis";
import type { NodeRedisLike } from "../../src/index.ts";
import type { Address } from "./servers/connection.ts";

/** The methods that tests use are the same in 5. */
type NodeRedis = typeof NodeRedis6;
export type NodeRedisClient = ReturnType<NodeRedis["createClient"]>;

const require = createRequire(import.meta.url);
/** Loaded only when used: loading takes longer than this whole package. */
const library = (version: 5 | 6): NodeRedis => require(version === 5 ? "redis5" : "redis") as NodeRedis;

export interface NodeRedisOptions {
  url?: string;
  host?: string;
  port?: number;
  username?: string;
  password?: string;
  database?: number;
  keyPrefix?: string;
  disableOfflineQueue?: boolean;
  /** How long it waits before it tries again, in ms; false: it gives up. */
  reconnectStrategy?: (tries: number) => number | false;
}

/** A client that connects, now and after every loss; the tests provoke its losses. */
export function openNodeRedis(version: 5 | 6, options: NodeRedisOptions): NodeRedisClient {
  const client = makeNodeRedis(version, options);
  client.on("error", () => {});
  client.connect().catch(() => {});
  return client;
}

/** The result of `createClient`, `createCluster` or `createSentinel`. */
export type Made = NodeRedisLike & { destroy(): unknown };

/** A client of this address: of a server, a Cluster or a Sentinel group. Not connected yet. */
export function nodeRedisAt(
  version: 5 | 6,
  { redis, nodes, natMap: nodeAddressMap }: Address,
  { reconnectStrategy = () => 20, ...others }: NodeRedisOptions = {},
): Made {
  const { host, port, username, password, db, keyPrefix, sentinels, name = "" } = redis;
  const who = { ...(username && { username }), ...(password && { password }) };
  const prefix = keyPrefix ? { keyPrefix } : {};
  const map = nodeAddressMap ? { nodeAddressMap } : {};
  const socket = { reconnectStrategy };
  if (nodes) {
    const rootNodes = nodes.map((node) => ({ socket: node }));
    return library(version).createCluster({
      rootNodes,
      defaults: { socket, ...who },
      ...prefix,
      ...map,
    }) as never;
  }
  const login = { ...who, ...(db && { database: db }) };
  if (!sentinels)
    return makeNodeRedis(version, {
      ...(host && { host }),
      ...(port && { port }),
      ...prefix,
      ...login,
      ...others,
      reconnectStrategy,
    }) as unknown as Made;
  const sentinelRootNodes = sentinels as { host: string; port: number }[];
  return library(version).createSentinel({
    name,
    sentinelRootNodes,
    nodeClientOptions: { socket, ...login },
    ...prefix,
    ...map,
  }) as never;
}

function makeNodeRedis(version: 5 | 6, options: NodeRedisOptions): NodeRedisClient {
  const { host, port, reconnectStrategy = () => 20, ...others } = options;
  const where = others.url === undefined ? { host: host ?? "127.0.0.1", port: port ?? 6379 } : {};
  const socket = { ...where, reconnectStrategy };
  return first(version).duplicate({ ...others, socket }) as NodeRedisClient;
}

const made = new Map<number, NodeRedisClient>();

/** Each `createClient` makes a class of all commands anew; a duplicate shares it. */
function first(version: 5 | 6): NodeRedisClient {
  const known = made.get(version);
  if (known) return known;
  const client: NodeRedisClient = library(version).createClient();
  made.set(version, client);
  return client;
}
