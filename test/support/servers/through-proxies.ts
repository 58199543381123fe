import { TcpProxy } from "../tcp-proxy.ts";
import { type Address, type Connection, type ConnectOptions, openConnection } from "./connection.ts";
import type { Topology } from "./topology.ts";

/**
 * A topology whose servers are reached through proxies, one for each; admin connections are direct.
 */
export interface Proxied {
  /** The address through the proxies, for another process too. */
  readonly address: Address;
  /** In the order of the topology's servers. */
  readonly proxies: readonly TcpProxy[];
  /** The proxy in front of this server. */
  proxyOf(server: { port: number }): TcpProxy;
  connect(options?: ConnectOptions): Connection;
  /** Closes the connections and the proxies, but not the topology. */
  stop(): Promise<void>;
}

/**
 * Puts a proxy in front of every server of a topology; sentinels are reached directly. Not for TLS,
 * which no proxy can read.
 *
 * @example
 * const proxied = await throughProxies(cluster);
 * const redis = proxied.connect();
 * const { server } = await cluster.primaryOf("orders");
 * const dropped = proxied.proxyOf(server).dropReply(named("incr"));
 * await redis.incr("orders"); // 2: executed twice
 * await dropped;
 * await proxied.stop();
 */
export async function throughProxies(topology: Topology): Promise<Proxied> {
  const { servers } = topology;
  const proxies = await Promise.all(servers.map((server) => TcpProxy.start(server)));
  const proxyOf = ({ port }: { port: number }): TcpProxy => {
    const proxy = proxies[servers.findIndex((server) => server.port === port)];
    if (proxy === undefined) throw new Error(`No server of this topology has the port ${port}`);
    return proxy;
  };
  const address = through(topology.address, proxyOf, servers);
  const opened: Connection[] = [];
  return {
    address,
    proxies,
    proxyOf,
    connect(options) {
      const connection = openConnection(address, options);
      opened.push(connection);
      return connection;
    },
    async stop() {
      for (const connection of opened.splice(0)) connection.disconnect();
      await Promise.all(proxies.map((proxy) => proxy.stop()));
    },
  };
}

function through(
  address: Address,
  proxyOf: (server: { port: number }) => TcpProxy,
  servers: Topology["servers"],
): Address {
  const door = (server: { port: number }) => ({ host: "127.0.0.1", port: proxyOf(server).port });
  const natMap = Object.fromEntries(servers.map((one) => [`${one.host}:${one.port}`, door(one)]));
  const { redis, nodes, masters } = address;
  if (nodes) return { ...address, natMap, nodes: nodes.map(door) };
  if (redis.sentinels) return { ...address, natMap };
  const behind = <T extends { port?: number | undefined }>(one: T) => ({
    ...one,
    ...door({ port: one.port ?? 0 }),
  });
  return { ...address, redis: behind(redis), ...(masters && { masters: masters.map(behind) }) };
}
