import type { Redis } from "ioredis";
import type { LocalServer } from "../../../tools/redis/index.ts";

/** A server of a Cluster. */
export interface ClusterNode {
  readonly server: LocalServer;
  /** Its name in the Cluster, which survives restarts. */
  readonly id: string;
  readonly admin: Redis;
}

/** A node's view of another, or of itself. */
export interface Peer {
  readonly id: string;
  readonly port: number;
  readonly isPrimary: boolean;
  /** The node that a replica copies; "-" for a primary. */
  readonly primaryId: string;
  /** Does the reporting node consider it failed, certainly or possibly? */
  readonly isFailing: boolean;
  /** Ranges of slots, both ends included. */
  readonly slots: (readonly [number, number])[];
}

/** Reads `CLUSTER NODES`: `id ip:port@bus flags primary ping pong epoch link slot slot …` */
function parsePeers(text: string): Peer[] {
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const [id = "", address = "", flags = "", primaryId = "", , , , , ...slots] = line.split(" ");
      const names = flags.split(",");
      return {
        id,
        port: Number(/:(\d+)/.exec(address)?.[1]),
        isPrimary: names.includes("master"),
        primaryId,
        isFailing: names.includes("fail") || names.includes("fail?"),
        slots: slots.filter((range) => !range.startsWith("[")).map(range), // "[…]" is a slot that moves
      };
    });
}

/** Everything this node knows, itself included. */
export async function peersOf(node: ClusterNode): Promise<Peer[]> {
  return parsePeers(String(await node.admin.cluster("NODES")));
}

/** Does a slot belong to a peer? */
export function owns(peer: Peer, slot: number): boolean {
  return peer.slots.some(([first, last]) => first <= slot && slot <= last);
}

function range(text: string): [number, number] {
  const [first = 0, last = first] = text.split("-").map(Number);
  return [first, last];
}
