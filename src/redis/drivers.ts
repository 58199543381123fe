import type { Driver, Link } from "./driver.ts";
import { ioredis } from "./ioredis/link.ts";
import { isPool } from "./node-redis/client.ts";
import { nodeRedis } from "./node-redis/index.ts";

/** In this order: the first driver that recognises the connection takes it. */
const DRIVERS: readonly Driver[] = [ioredis, nodeRedis];

/** A link on the caller's connection, whatever its library; null: it is no connection. */
export function linkTo(connection: unknown): Link | null {
  for (const driver of DRIVERS) {
    const link = driver(connection);
    if (link) return link;
  }
  return null;
}

/**
 * Messages show this for a value that is no connection. A mock of a library has only some of its
 * methods.
 */
export function noConnection(given: unknown): string {
  if (given instanceof Promise) return "must be a connection, received a Promise: await it first";
  if (typeof given === "object" && given !== null && isPool(given))
    return "must be one connection, and a pool of node-redis sends each command on another one: use createClient(…)";
  const known =
    "an ioredis connection, new Redis(…), or a node-redis client, createClient(…), of the packages ioredis and redis";
  const received = typeof given === "string" ? ", received a string" : "";
  return `must be ${known}${received}; for tests without a Redis there is createTestLocks() of holdfast/testing`;
}
