import type { Address } from "../api/redis.ts";

// How messages name where a connection leads, by whatever library. No user, no password.

/** "127.0.0.1:6379", or a socket's path. */
export function addressName({ host = "localhost", port = 6379, path }: Address): string {
  if (path !== undefined) return path;
  return `${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}`;
}

/** The first three of these places, and how many more there are. */
export const few = (places: readonly string[]): string =>
  places.length > 3 ? `${places.slice(0, 3).join(", ")} and ${places.length - 3} more` : places.join(", ");
