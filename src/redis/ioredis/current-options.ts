import type { ClusterLike, NodeLike, RedisLike } from "../../api/redis.ts";

export type Options = Readonly<Record<string, unknown>>;

/** The options by which a Cluster's nodes admit a connection. */
const ADMISSION = ["username", "password", "tls"] as const;

/** What a Cluster's `redisOptions` said of them when it was first used here. */
const first = new WeakMap<ClusterLike, Options>();

const shared = ({ options }: ClusterLike): Options =>
  (options as { redisOptions?: Options }).redisOptions ?? {};

/** Remembers how the nodes of this Cluster admit a connection at first. */
export function remember(cluster: ClusterLike): void {
  if (!first.has(cluster)) first.set(cluster, { ...shared(cluster) });
}

/**
 * The options with which a copy of this connection, to a node of `cluster`, connects now. An
 * application changes a Cluster's password in its `redisOptions`, or in the options of each node;
 * the other ones keep the old one.
 */
export function currentOptions(redis: RedisLike, cluster: ClusterLike | null): Options {
  if (!cluster) return redis.options as Options;
  const { host, port } = redis.options;
  // RACE: the Cluster has lost the node's connection, and has made another with current options.
  const known = cluster.nodes().find(({ options }) => options.host === host && options.port === port);
  const { options } = known ?? redis;
  const now = shared(cluster);
  const changed = ADMISSION.filter((key) => now[key] !== first.get(cluster)?.[key]);
  return changed.length === 0
    ? (options as Options)
    : { ...options, ...Object.fromEntries(changed.map((key) => [key, now[key]])) };
}

/**
 * Makes a copy connect with the current options of its original, now and after every loss. ioredis
 * copies the options once, and a password, a user, a certificate or an address may change later.
 * Only `own` options are the copy's.
 */
export function follow(copy: RedisLike | ClusterLike, own: object, current: () => Options): void {
  for (const key of new Set([...Object.keys(copy.options), ...Object.keys(current())]))
    if (!Object.hasOwn(own, key)) followOne(copy, key, current);
}

/** The nodes of a Cluster's copy connect as its own nodes do. */
export function followNodes(copy: ClusterLike, cluster: ClusterLike): void {
  copy.on("+node", (node: NodeLike) => {
    for (const key of ADMISSION) followOne(node, key, () => currentOptions(nearest(node, cluster), cluster));
  });
}

/** RACE: a copy may know a node before its original does. Any other one has the same credentials. */
function nearest(node: NodeLike, cluster: ClusterLike): NodeLike {
  const { host, port } = node.options;
  const nodes = cluster.nodes();
  const same = nodes.find(({ options }) => options.host === host && options.port === port) ?? nodes[0];
  return same ?? ({ options: shared(cluster) } as unknown as NodeLike);
}

/** ioredis reads its options each time that it connects. */
function followOne({ options }: RedisLike | ClusterLike, key: string, current: () => Options): void {
  const property = { enumerable: true, configurable: true };
  Object.defineProperty(options, key, {
    ...property,
    get: () => current()[key],
    set: (value) => Object.defineProperty(options, key, { ...property, value, writable: true }),
  });
}
