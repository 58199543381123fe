import { type ClusterNode, type Peer, peersOf } from "./cluster-node.ts";

/**
 * Whether these nodes say "ok", name the same owners of all slots, all of them among these nodes and none failing, and
 * whether those of them that own nothing are replicas in step with their primaries.
 */
export async function isHealthy(nodes: readonly ClusterNode[]): Promise<boolean> {
  const views = await Promise.all(nodes.map((node) => healthyView(node, nodes)));
  return views.length > 0 && views.every((view) => view !== "" && view === views[0]);
}

/** Who owns what in the eyes of a node; "" when something is not as it should be. */
async function healthyView(node: ClusterNode, nodes: readonly ClusterNode[]): Promise<string> {
  const [info, replication, peers] = await Promise.all([
    node.admin.cluster("INFO"),
    node.admin.info("replication"),
    peersOf(node),
  ]);
  const owners = peers.filter((peer) => peer.slots.length > 0);
  const isHealthy =
    String(info).includes("cluster_state:ok") &&
    owners.every((owner) => !owner.isFailing && nodes.some(({ id }) => id === owner.id)) &&
    (owners.some(({ id }) => id === node.id) || replication.includes("master_link_status:up"));
  return isHealthy ? ownership(owners) : "";
}

/** One line, to be compared with that of another node. */
function ownership(owners: Peer[]): string {
  const lines = owners.map(({ id, slots }) => `${id}=${slots.join(",")}`);
  return lines.sort().join(" ");
}
