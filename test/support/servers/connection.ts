import { Cluster as Cluster6, Redis as Redis6, type RedisOptions } from "ioredis";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis5";

/** What an application hands to a lock client. */
export type Connection = Redis6 | Cluster6;

/** The clients that the project supports, and the protocols that they speak. */
export type Driver = "ioredis 5" | "ioredis 6, RESP2" | "ioredis 6, RESP3";

/** Where a Redis is and what it takes to get in. Nothing but data, so a message can carry it. */
export interface Address {
  /** For Sentinel the sentinels and the name; for a Cluster what all its nodes have in common. */
  readonly redis: PlainOptions;
  /** The nodes of a Cluster; without them it is none. */
  readonly nodes?: { host: string; port: number }[];
  /** The other masters of a quorum. */
  readonly masters?: PlainOptions[];
  /**
   * Where to go instead, by "host:port" as Redis names a server: ioredis asks it of a Cluster and
   * of Sentinel.
   */
  readonly natMap?: Record<string, { host: string; port: number }>;
  /** What to connect with; "ioredis 6, RESP3" when left out, which is what ioredis 6 does by itself. */
  readonly driver?: Driver;
}

/** ioredis 6 has two reply mappings; the tests use the one that ioredis 5 has too. */
type PlainOptions = Omit<RedisOptions, "replyMapping">;

export interface ConnectOptions extends PlainOptions {
  /** Another than the address's. */
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
 * A connection to this address, as an application makes it. It tries again soon when Redis has
 * gone: ioredis 6 would wait up to 5 s between two attempts.
 */
export function openConnection(address: Address, options: ConnectOptions = {}): Connection {
  const { driver = address.driver ?? "ioredis 6, RESP3", cluster, ...given } = options;
  const protocol = driver === "ioredis 6, RESP2" ? { protocol: 2 as const } : {};
  const redis = { ...protocol, ...address.redis, ...given };
  const natMap = address.natMap && { natMap: address.natMap };
  const connection = address.nodes
    ? openCluster(driver, address.nodes, redis, { ...natMap, ...cluster })
    : openRedis(driver, { retryStrategy: soon, sentinelRetryStrategy: soon, ...natMap, ...redis });
  connection.on("error", () => {}); // losing Redis is what tests are about
  return connection;
}

function openRedis(driver: Driver, options: PlainOptions): Redis6 {
  // The methods that tests use are the same in both.
  return driver === "ioredis 5" ? (new Redis5(options as object) as unknown as Redis6) : new Redis6(options);
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
  if (driver === "ioredis 5") return new Cluster5(nodes, options as object) as unknown as Cluster6;
  return new Cluster6(nodes, options);
}

function soon(times: number): number {
  return Math.min(times * 20, 200);
}
