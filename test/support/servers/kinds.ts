import { RedisCluster } from "./cluster.ts";
import type { Address, ConnectOptions, Driver } from "./connection.ts";
import { SentinelGroup } from "./sentinel.ts";
import { Standalone } from "./standalone.ts";
import { launchTls } from "./tls.ts";
import type { Topology, TopologyKind } from "./topology.ts";

/** The options that all connections of a variant share; a message can carry it. */
interface Common {
  driver?: Driver;
  keyPrefix?: string;
}

/** The shared test server, or a private one without it. */
const one = () => Standalone.launch(process.env.TEST_REDIS_URL ? { url: process.env.TEST_REDIS_URL } : {});
const sentinel = () => SentinelGroup.launch();
/**
 * No test makes it fail, and on a busy machine a node that is silent for a second has not failed.
 */
const cluster = () => RedisCluster.launch({ nodeTimeout: 15_000 });

/** The shared test server, unchanged. */
export const standalone = variant("standalone", one);

/** Every way to run Redis that the project supports, for a suite that runs over all of them. */
export const topologies: readonly TopologyKind[] = [
  standalone,
  variant("standalone, RESP2", one, { driver: "ioredis 6, RESP2" }),
  variant("standalone, ioredis 5", one, { driver: "ioredis 5" }),
  variant("standalone, key prefix", one, { keyPrefix: "app:" }),
  variant("standalone, ioredis 5, key prefix", one, { driver: "ioredis 5", keyPrefix: "app:" }),
  variant("TLS", launchTls),
  variant("Sentinel", sentinel),
  variant("Sentinel, ioredis 5", sentinel, { driver: "ioredis 5" }),
  variant("Cluster", cluster),
  variant("Cluster, RESP2", cluster, { driver: "ioredis 6, RESP2" }),
  variant("Cluster, ioredis 5", cluster, { driver: "ioredis 5" }),
  variant("Cluster, key prefix", cluster, { keyPrefix: "app:" }),
];

/** A topology whose connections have these options by default. */
function variant(name: string, start: () => Promise<Topology>, common: Common = {}): TopologyKind {
  return { name, launch: async () => withCommon(name, await start(), common) };
}

function withCommon(name: string, topology: Topology, { driver, keyPrefix }: Common): Topology {
  const { address: plain } = topology;
  const redis = { ...plain.redis, ...(keyPrefix !== undefined && { keyPrefix }) };
  const address: Address = { ...plain, redis, ...(driver && { driver }) };
  const common = { ...(driver && { driver }), ...(keyPrefix !== undefined && { keyPrefix }) };
  return {
    name,
    address,
    servers: topology.servers,
    connect: (options?: ConnectOptions) => topology.connect({ ...common, ...options }),
    admins: () => topology.admins(),
    adminOf: (key) => topology.adminOf(key),
    stop: () => topology.stop(),
  };
}
