import type { Driver, Link } from "./driver.ts";
import { ioredis } from "./ioredis/link.ts";

/** In this order: the first one that knows the connection has it. */
const DRIVERS: readonly Driver[] = [ioredis];

/** A link on the caller's connection, by whatever library; null: it is no connection. */
export function linkTo(connection: unknown): Link | null {
  for (const driver of DRIVERS) {
    const link = driver(connection);
    if (link) return link;
  }
  return null;
}

/** What messages say that no connection was given. A mock of ioredis has some of its methods only. */
export const NO_CONNECTION =
  "must be an ioredis connection, new Redis(…); for tests without a Redis there is createTestLocks() of holdfast/testing";
