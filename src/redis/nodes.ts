import type { ClusterLike, NodeLike } from "./types.ts";

/** The primary that owns a slot by the map that ioredis keeps: its address and connection. Null: none is known. */
export function ownerOf(cluster: ClusterLike, slot: number): { address: string; node: NodeLike } | null {
  const address = cluster.slots[slot]?.[0];
  const node = cluster.nodes("master").find(({ options }) => `${options.host}:${options.port}` === address);
  return address && node ? { address, node } : null;
}
