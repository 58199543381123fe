import { createRequire } from "node:module";
import { Cluster as Cluster6, Redis as Redis6, type RedisOptions } from "ioredis";
import type * as Ioredis5 from "ioredis5";

/** Loaded only when used, because every test file loads this one. */
const ioredis5 = (): typeof Ioredis5 => createRequire(import.meta.url)("ioredis5") as typeof Ioredis5;

/** The connection that an application gives to a lock client. */
export type Connection = Redis6 | Cluster6;

/** The versions of ioredis that the project supports, and the protocols that they speak. */
export type Driver = "ioredis 5" | "ioredis 6, RESP2" | "ioredis 6, RESP3";

/** The address and credentials of a Redis. Only data, so a message can carry it. */
export interface Address {
  /**
   * For Sentinel the sentinels and the name; for a Cluster the options that all its nodes share.
   */
  readonly redis: PlainOptions;
  /** The nodes of a Cluster; left out: it is none. */
  readonly nodes?: { host: string; port: number }[];
  /** The other masters of a quorum. */
  readonly masters?: PlainOptions[];
  /**
   * Replacement addresses, by "host:port" as Redis names a server: ioredis looks them up for a
   * Cluster and for Sentinel.
   */
  readonly natMap?: Record<string, { host: string; port: number }>;
  /** What to connect with; default: "ioredis 6, RESP3", ioredis 6's own default. */
  readonly driver?: Driver;
}

/** ioredis 6 has two reply mappings; the tests use ioredis 5's. */
type PlainOptions = Omit<RedisOptions, "replyMapping">;

export interface ConnectOptions extends PlainOptions {
  /** Overrides the address's. */
  driver?: Driver;
  /** For a Cluster only: its own options. */
  cluster?: Omit<NonNullable<ConstructorParameters<typeof Cluster6>[1]>, "redisOptions">;
}

/** The address of one server. */
export function addressOf(url: string): Address {
  const { hostname, port, username, password, pathname } = new URL(url);
  return {
    redis: {
      host: hostname.replace(/^\[(.*)\]$/, "$1"), // a URL writes an IPv6 address in brackets
      port: Number(port || 6379),
      ...(username && { username }),
      ...(password && { password }),
      ...(pathname.length > 1 && { db: Number(pathname.slice(1)) }),
    },
  };
}

/**
 * A connection to this address, as an application makes it. It retries soon after Redis has gone:
 * ioredis 6 would wait up to 5 s between two attempts.
 */
export function openConnection(address: Address, options: ConnectOptions = {}): Connection {
  const { driver = address.driver ?? "ioredis 6, RESP3", cluster, ...given } = options;
  const protocol = driver === "ioredis 6, RESP2" ? { protocol: 2 as const } : {};
  const redis = { ...protocol, ...address.redis, ...given };
  const natMap = address.natMap && { natMap: address.natMap };
  const connection = address.nodes
    ? openCluster(driver, address.nodes, redis, { ...natMap, ...cluster })
    : openRedis(driver, { retryStrategy: soon, sentinelRetryStrategy: soon, ...natMap, ...redis });
  connection.on("error", () => {}); // losing Redis is the subject of tests
  return connection;
}

function openRedis(driver: Driver, options: PlainOptions): Redis6 {
  // The methods that tests use are the same in both.
  return driver === "ioredis 5"
    ? (new (ioredis5().Redis)(options as object) as unknown as Redis6)
    : new Redis6(options);
}

function openCluster(
  driver: Driver,
  nodes: { host: string; port: number }[],
  redis: PlainOptions,
  cluster: ConnectOptions["cluster"],
): Cluster6 {
  const { lazyConnect, enableOfflineQueue, retryStrategy: _, ...redisOptions } = redis;
  const options = {
    clusterRetryStrategy: soon,
    ...(lazyConnect !== undefined && { lazyConnect }),
    ...(enableOfflineQueue !== undefined && { enableOfflineQueue }),
    ...cluster,
    redisOptions,
  };
  if (driver === "ioredis 5")
    return new (ioredis5().Cluster)(nodes, options as object) as unknown as Cluster6;
  return new Cluster6(nodes, options);
}

function soon(times: number): number {
  return Math.min(times * 20, 200);
}
