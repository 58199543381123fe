import { type ClusterNode, type Peer, peersOf } from "./cluster-node.ts";

/**
 * Do these nodes say "ok", and have all of them the same view? Every slot must have an owner among
 * these nodes, and the others must be replicas of the owners and in step.
 */
export async function isHealthy(nodes: readonly ClusterNode[]): Promise<boolean> {
  const ids = new Set(nodes.map(({ id }) => id));
  const views = await Promise.all(nodes.map((node) => healthyView(node, ids)));
  return views.length > 0 && views.every((view) => view !== "" && view === views[0]);
}

/** The role of every node according to one of them; "" if something is wrong. */
async function healthyView(node: ClusterNode, ids: Set<string>): Promise<string> {
  const [info, replication, peers] = await Promise.all([
    node.admin.cluster("INFO"),
    node.admin.info("replication"),
    peersOf(node),
  ]);
  const present = peers.filter(({ id }) => ids.has(id));
  const isHealthy =
    String(info).includes("cluster_state:ok") &&
    peers.every((peer) => ids.has(peer.id) || peer.slots.length === 0) &&
    present.every(isInPlace) &&
    (replication.includes("role:master") || replication.includes("master_link_status:up"));
  return isHealthy ? present.map(description).sort().join(" ") : "";
}

/** Does it answer, and either own slots or copy a primary? */
function isInPlace(peer: Peer): boolean {
  return !peer.isFailing && peer.isPrimary === peer.slots.length > 0;
}

/** One word, to be compared with another node's. */
function description({ id, primaryId, slots }: Peer): string {
  return `${id}:${primaryId}:${slots.join(",")}`;
}
