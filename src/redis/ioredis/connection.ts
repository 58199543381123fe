import type { ClusterLike, NodeLike, RedisLike, SubscriberLike } from "../../api/redis.ts";
import { setImmediate } from "../../util/real-timers.ts";

/**
 * The socket of a connection that was opened here must not keep a finished program running. Each
 * reconnect makes a new one.
 */
export function unref(connection: SubscriberLike): void {
  const { stream } = connection as { stream?: { unref?(): void } };
  stream?.unref?.();
}

/** The same of each of its sockets, from its first moment on: perhaps nothing ever answers there. */
export function neverKeepAlive(connection: SubscriberLike): void {
  const quieten = (): void => unref(connection);
  // The socket is made a turn later; with Sentinel it is there when it has connected.
  connection.on("connecting", () => setImmediate(quieten));
  for (const event of ["connect", "ready"]) connection.on(event, quieten);
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

/**
 * Is this an ioredis connection, of whatever copy and version? What has less than is used of one
 * would fail at some later time.
 */
export function isConnection(redis: unknown): redis is RedisLike | ClusterLike {
  if (typeof redis !== "object" || redis === null) return false;
  const given = redis as Partial<RedisLike>;
  if (typeof given.status !== "string" || typeof given.options !== "object" || !given.options) return false;
  return METHODS.every((method) => typeof given[method] === "function");
}

export function isCluster(redis: RedisLike | ClusterLike): redis is ClusterLike {
  return "isCluster" in redis && redis.isCluster === true;
}

/**
 * The primary that owns a slot by the map that ioredis keeps: its address and connection. Null:
 * none is known.
 */
export function ownerOf(cluster: ClusterLike, slot: number): { address: string; node: NodeLike } | null {
  const address = cluster.slots[slot]?.[0];
  const node = cluster.nodes("master").find(({ options }) => `${options.host}:${options.port}` === address);
  return address && node ? { address, node } : null;
}
