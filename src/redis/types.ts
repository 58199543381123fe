import type { ClusterLike, NodeLike, RedisLike, SubscriberLike } from "../api/redis.ts";
import { detached } from "../util/detached.ts";
import { setImmediate } from "../util/real-timers.ts";

/**
 * A duplicate must reconnect whatever the caller chose for its own connection. `Subscriber`
 * subscribes again. When it is closed, nothing waits for the server to close it too: that would
 * keep a process alive for 2 s.
 */
const SUBSCRIBER_OPTIONS = {
  disconnectTimeout: 0,
  enableOfflineQueue: true,
  enableAutoPipelining: false,
  autoResendUnfulfilledCommands: true,
  autoResubscribe: false,
  lazyConnect: false,
  maxRetriesPerRequest: null,
  commandTimeout: undefined,
  socketTimeout: undefined,
  keyPrefix: "",
  readOnly: false,
};

/**
 * A subscriber connection like this one, which keeps no process alive. @throws TypeError where the
 * connection makes none
 */
export function openSubscriber(
  redis: RedisLike,
  retryStrategy: (times: number) => number | null,
): SubscriberLike {
  const connection = detached(() => redis.duplicate({ ...SUBSCRIBER_OPTIONS, retryStrategy }));
  if (!isConnection(connection))
    throw new TypeError("duplicate() of the ioredis connection made no connection");
  neverKeepAlive(connection);
  return connection;
}

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

/** What messages say that no connection was given. A mock of ioredis has some of its methods only. */
export const NO_CONNECTION =
  "must be an ioredis connection, new Redis(…); for tests without a Redis there is createTestLocks() of holdfast/testing";

/** Connections that `duplicate` made: what happens to them is our business. */
const own = new WeakSet<object>();

/** Did this package open it to carry commands? Then nobody else uses it. */
export const isOwn = (redis: object): boolean => own.has(redis);

/** A connection of our own to the same place. */
export function duplicate<T extends RedisLike | ClusterLike>(redis: T): T {
  const options = { lazyConnect: false, enableOfflineQueue: true };
  const copy = detached(() => (isCluster(redis) ? redis.duplicate([], options) : redis.duplicate(options)));
  own.add(copy);
  // ioredis prints errors that nobody listens to; commands tell about them, with the lock they hit.
  copy.on("error", () => {});
  return copy as RedisLike | ClusterLike as T;
}

export function isCluster(redis: RedisLike | ClusterLike): redis is ClusterLike {
  return "isCluster" in redis && redis.isCluster === true;
}

/** Why nothing can be sent where `ownerOf` knows none. */
export const NO_NODE = "the Cluster names no node for this hash slot: is it complete (CLUSTER INFO)?";

/**
 * The primary that owns a slot by the map that ioredis keeps: its address and connection. Null:
 * none is known.
 */
export function ownerOf(cluster: ClusterLike, slot: number): { address: string; node: NodeLike } | null {
  const address = cluster.slots[slot]?.[0];
  const node = cluster.nodes("master").find(({ options }) => `${options.host}:${options.port}` === address);
  return address && node ? { address, node } : null;
}
