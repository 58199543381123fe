import type { ClusterLike, NodeLike, RedisLike, SubscriberLike } from "../../api/redis.ts";
import { setImmediate } from "../../util/real-timers.ts";

/**
 * The socket of a connection that was opened here must not keep a finished program running. Each
 * reconnect makes a new socket.
 */
export function unref(connection: SubscriberLike): void {
  const { stream } = connection as { stream?: { unref?(): void } };
  stream?.unref?.();
}

/** The same for each of its sockets, from creation on: a server may never answer. */
export function neverKeepAlive(connection: SubscriberLike): void {
  const quieten = (): void => unref(connection);
  // The socket is created a turn later; with Sentinel it exists once the connection is made.
  connection.on("connecting", () => setImmediate(quieten));
  for (const event of ["connect", "ready"]) connection.on(event, quieten);
  connection.on("connect", () => {
    for (const sentinel of sentinelsOf(connection)) {
      neverKeepAlive(sentinel);
      setImmediate(() => unref(sentinel));
    }
  });
}

/**
 * With `failoverDetector: true` each connection opens connections to the sentinels, which ioredis
 * does not expose.
 */
function sentinelsOf(connection: SubscriberLike): readonly SubscriberLike[] {
  const { connector } = connection as {
    connector?: { failoverDetector?: { sentinels?: readonly { client: SubscriberLike }[] } | null };
  };
  return connector?.failoverDetector?.sentinels?.map(({ client }) => client) ?? [];
}

const METHODS = [
  "evalsha",
  "eval",
  "callBuffer",
  "sendCommand",
  "on",
  "off",
  "listenerCount",
  "duplicate",
  "disconnect",
] as const;

/** The members used here that it lacks: without one of them it would fail later. */
export function lackedByConnection(given: Partial<RedisLike>): string[] {
  return [
    ...(typeof given.status === "string" ? [] : ["status"]),
    ...(typeof given.options === "object" && given.options ? [] : ["options"]),
    ...METHODS.filter((method) => typeof given[method] !== "function"),
  ];
}

/** Is this an ioredis connection, of any copy and version? */
export const isConnection = (redis: unknown): redis is RedisLike | ClusterLike =>
  typeof redis === "object" && redis !== null && lackedByConnection(redis).length === 0;

export function isCluster(redis: RedisLike | ClusterLike): redis is ClusterLike {
  return "isCluster" in redis && redis.isCluster === true;
}

/**
 * The primary that owns a slot by ioredis's map: its address and connection. Null: none is known.
 */
export function ownerOf(cluster: ClusterLike, slot: number): { address: string; node: NodeLike } | null {
  const address = cluster.slots[slot]?.[0];
  const node = cluster.nodes("master").find(({ options }) => `${options.host}:${options.port}` === address);
  return address && node ? { address, node } : null;
}
