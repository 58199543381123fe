import type { Redis } from "ioredis";
import { checkClientOptions, type LockClientOptions } from "../../src/api/options.ts";
import { redisServer } from "../../src/client/server.ts";
import { ServerClient } from "../../src/client/server-client.ts";
import type { LockClient } from "../../src/index.ts";
import type { QuorumClient, QuorumClientOptions } from "../../src/quorum/index.ts";
import { MajorityClient } from "../../src/quorum/majority-client.ts";
import { checkQuorumOptions } from "../../src/quorum/options.ts";
import { MemoryLink } from "../../src/tools/testing/memory-link.ts";
import { MemoryRedis } from "../../src/tools/testing/memory-redis.ts";
import type { Exemption } from "../support/exemption.ts";
import { linkOf, standIns } from "../support/link.ts";
import type { OwnServer, Topology, TopologyKind } from "../support/servers/topology.ts";
import { Effects } from "../world/effects.ts";
import { MemoryConnection } from "../world/memory-connection.ts";
import { ProcessNetwork, SimulatedServer } from "../world/network.ts";
import { dice, story, thisProcess, time, whileTimePasses } from "../world/virtual-time.ts";

/** What does not run in virtual time, and why. */
const EXEMPTIONS: readonly Exemption[] = [
  { tests: [/^excludes processes:/], why: "no other process reaches the memory of this one" },
];

/** How long what is sent takes to arrive, in ms. */
const DELAYS = { least: 0.1, most: 0.3, slow: 0 };
/** After how many ms a driver connects again. */
const RECONNECT = 20;

/** The way to a Redis in memory of its own. */
function start(): { readonly network: ProcessNetwork; readonly server: SimulatedServer } {
  const server = new SimulatedServer(time, story, { MemoryRedis });
  return {
    server,
    network: new ProcessNetwork(
      { time, story, dice, delays: DELAYS, server, effects: new Effects() },
      thisProcess(),
    ),
  };
}

function connectionTo(network: ProcessNetwork): Redis {
  const made = new MemoryConnection(network);
  standIns.set(made, made.link);
  return made as unknown as Redis;
}

/** The real client on one Redis in memory. */
export function clientOn(redis: Redis, options?: LockClientOptions): LockClient {
  const settings = checkClientOptions(options);
  return new ServerClient(redisServer(linkOf(redis), settings), settings);
}

/** The real client of a quorum on several of them. */
export const quorumOn = (nodes: readonly Redis[], options?: QuorumClientOptions): QuorumClient =>
  new MajorityClient(nodes.map(linkOf), checkQuorumOptions({ restartDelay: 0, ...options }));

/** A Redis in memory with one connection to it. `freeze`: it does not answer for so many ms. */
export function startMaster(): { readonly redis: Redis; readonly freeze: (ms: number) => void } {
  const { network } = start();
  const freeze = (ms: number): void => {
    for (const wire of network.wires) wire.freeze(ms);
  };
  return { redis: connectionTo(network), freeze };
}

const one = async (): Promise<Topology> => {
  const { network } = start();
  const connect = () => connectionTo(network);
  return {
    ...COMMON,
    connect,
    client: (redis, options) => clientOn(redis, options) as unknown as QuorumClient,
    admins: async () => [connect()],
    adminOf: async () => connect(),
  };
};

async function ownServer(): Promise<OwnServer> {
  const { network, server } = start();
  return {
    join: (parties, client) =>
      parties.join({ connect: () => connectionTo(network), create: clientOn, client }),
    restart: async () => {
      server.redis.keys.clear();
      server.forgetScripts();
      for (const wire of network.wires) {
        const { end } = wire;
        wire.cut("lost");
        if (end instanceof MemoryLink) setTimeout(() => end.restore(), RECONNECT);
      }
    },
    stop: async () => {},
  };
}

/** Three masters in memory. A connection to the first one stands for one to each. */
const three = async (): Promise<Topology> => {
  const networks = [start(), start(), start()].map(({ network }) => network);
  const groups = new WeakMap<Redis, Redis[]>();
  const group = (first: Redis): Redis[] => groups.get(first) ?? [first];
  const connect = (): Redis => {
    const made = networks.map(connectionTo);
    const [first] = made as [Redis];
    groups.set(first, made);
    return first;
  };
  return {
    ...COMMON,
    connect,
    group,
    client: (first, options) => quorumOn(group(first), options),
    admins: async () => group(connect()),
    adminOf: async () => connect(),
  };
};

const COMMON = {
  name: "in virtual time",
  address: { kind: "none" } as never,
  servers: [],
  stop: async () => {},
};

/** The real client on Redis in memory: all of it in virtual time, so no test is late. */
export const inVirtualTime: TopologyKind = {
  name: COMMON.name,
  exemptions: EXEMPTIONS,
  launch: one,
  during: whileTimePasses,
  ownServer,
};

/** The same for a quorum. */
export const threeInVirtualTime: TopologyKind = { ...inVirtualTime, launch: three };
