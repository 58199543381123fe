import type { Address, ClusterLike, RedisLike } from "../../api/redis.ts";
import { addressName, few } from "../place-name.ts";
import { isCluster } from "./connection.ts";

/**
 * Where a connection leads: "127.0.0.1:6379", a socket's path, a Sentinel group, a Cluster's nodes.
 * No user, no password.
 */
export function nameOf(connection: RedisLike | ClusterLike): string {
  if (isCluster(connection)) {
    const { startupNodes } = connection as { startupNodes?: readonly unknown[] };
    const known = connection.nodes("all").map(({ options }) => addressName(options));
    const places = known.length > 0 ? known : (startupNodes ?? []).map(startupNode);
    return `Cluster of ${few(places)}`;
  }
  const { options } = connection;
  if (!options.sentinels) return addressName(options);
  return `Sentinel group ${options.name ?? ""} of ${few(options.sentinels.map(addressName))}`;
}

/** A node in a Cluster's options: as an address, a port or a URL, which may have a password. */
function startupNode(node: unknown): string {
  if (typeof node === "object" && node !== null) return addressName(node as Address);
  const text = String(node);
  if (!URL.canParse(text)) return /^\d+$/.test(text) ? `localhost:${text}` : "an address";
  const { hostname, port } = new URL(text);
  return `${hostname}:${port || 6379}`;
}
