import type { Driver, Link } from "./driver.ts";
import { ioredis } from "./ioredis/link.ts";
import { isPool } from "./node-redis/client.ts";
import { nodeRedis } from "./node-redis/index.ts";

/** In this order: the first one that knows the connection has it. */
const DRIVERS: readonly Driver[] = [ioredis, nodeRedis];

/** A link on the caller's connection, by whatever library; null: it is no connection. */
export function linkTo(connection: unknown): Link | null {
  for (const driver of DRIVERS) {
    const link = driver(connection);
    if (link) return link;
  }
  return null;
}

/** What messages say of what is no connection. A mock of a library has some of its methods only. */
export const noConnection = (given: unknown): string =>
  typeof given === "object" && given !== null && isPool(given)
    ? "must be one connection, and a pool of node-redis sends each command on another one: use createClient(…)"
    : "must be an ioredis connection, new Redis(…), or a node-redis client, createClient(…), of the packages ioredis and redis; for tests without a Redis there is createTestLocks() of holdfast/testing";
