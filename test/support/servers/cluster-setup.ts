import type { LocalServer } from "../../../tools/redis/index.ts";
import { serverIs } from "../server-version.ts";
import { until } from "../until.ts";
import { type ClusterNode, peersOf } from "./cluster-node.ts";
import type { Connections } from "./connections.ts";
import { launchAll } from "./launch-all.ts";

const SLOTS = 16_384;

export interface ClusterOptions {
  /** Default: three, the smallest number that outvotes a failed one. */
  primaries?: number;
  /** Replicas of each primary; default: 0. */
  replicas?: number;
  /** After this many ms of silence a node counts as failed; default: 1 000. */
  nodeTimeout?: number;
  /** More arguments for all servers. */
  args?: string[];
}

/** Starts the servers, each of which is a Cluster of its own until they have met. */
export async function launchNodes(connections: Connections, options: ClusterOptions): Promise<ClusterNode[]> {
  const { primaries = 3, replicas = 0, nodeTimeout = 1_000, args = [] } = options;
  const settings = {
    "cluster-enabled": "yes",
    "cluster-config-file": "nodes.conf",
    "cluster-node-timeout": nodeTimeout,
    "cluster-replica-validity-factor": 0, // a replica is a candidate however old its data
    ...(serverIs("7.0") ? { "cluster-allow-replica-migration": "no" } : {}), // unknown before
    "repl-diskless-sync-delay": 0,
  };
  const all = [...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, `${value}`]), ...args];
  const servers = await launchAll(primaries * (1 + replicas), { args: all });
  const node = async (server: LocalServer): Promise<ClusterNode> => {
    const admin = connections.admin(server);
    return { server, admin, id: String(await admin.cluster("MYID")) };
  };
  return Promise.all(servers.map(node));
}

/** Makes one Cluster of the nodes: the first ones own the slots, the others copy them in turn. */
export async function join(nodes: readonly ClusterNode[], primaries: number): Promise<void> {
  await Promise.all(
    nodes.map(async ({ admin }, index) => {
      await admin.cluster("SET-CONFIG-EPOCH", index + 1);
      if (index >= primaries) return;
      const [begin = 0, end = 0] = [index, index + 1].map((part) => Math.floor((part * SLOTS) / primaries));
      // Before Redis 7.0 slots have no ranges.
      if (serverIs("7.0")) await admin.call("CLUSTER", "ADDSLOTSRANGE", `${begin}`, `${end - 1}`);
      else await admin.cluster("ADDSLOTS", ...Array.from({ length: end - begin }, (_, i) => begin + i));
    }),
  );
  // Each meets each: so they need not wait for gossip.
  const pairs = nodes.flatMap((one, index) => nodes.slice(index + 1).map((other) => [one, other] as const));
  await Promise.all(
    pairs.map(([one, other]) => one.admin.cluster("MEET", "127.0.0.1", `${other.server.port}`)),
  );
  const ids = nodes.map((node) => node.id).sort();
  const knowsAll = async (node: ClusterNode) => {
    const known = (await peersOf(node)).map((peer) => peer.id);
    return known.sort().join() === ids.join();
  };
  await until(async () => (await Promise.all(nodes.map(knowsAll))).every(Boolean), {
    what: "the nodes to know each other",
  });
  const replicate = (node: ClusterNode, index: number) =>
    node.admin.cluster("REPLICATE", nodes[index % primaries]?.id ?? "");
  await Promise.all(nodes.slice(primaries).map(replicate));
}
