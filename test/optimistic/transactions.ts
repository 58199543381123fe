import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import type { Transaction } from "../../src/optimistic/index.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { freshName } from "../support/fixture.ts";
import { connectionIds, trackUnhandled } from "../support/leaks.ts";
import { until } from "../support/until.ts";

/** What a test of `optimistic` works with. */
interface Props {
  readonly server: LocalServer;
  /** The caller's connection. */
  readonly redis: Redis;
  /** The one that writes between the read and EXEC. */
  readonly other: Redis;
  readonly key: string;
}

/**
 * Sets all that up for one test file: a server of its own, for each test a fresh connection and
 * key. No test may leave a connection of a transaction, an unhandled rejection or a process warning
 * behind.
 *
 * @example
 * let redis: Redis;
 * const { connect } = transactions((props) => {
 *   ({ redis } = props);
 * });
 */
export function transactions(use: (props: Props) => void): { connect: typeof connect } {
  const unhandled = trackUnhandled();
  const connections: { disconnect(): unknown }[] = [];
  let server: LocalServer;
  let other: Redis;

  /** Ends with the test. */
  function connect<T extends { disconnect(): unknown }>(connection: T): T {
    connections.push(connection);
    return connection;
  }

  beforeAll(async () => {
    server = await launchServer();
    other = new Redis(server.url);
  });
  beforeEach(async () => {
    const redis = connect(new Redis(server.url));
    await redis.ping();
    use({ server, redis, other, key: freshName("stock") });
  });
  afterEach(async () => {
    for (const connection of connections.splice(0)) connection.disconnect();
    await until(async () => (await connectionIds(other, "normal")).length === 0, {
      what: "the connections of the transactions to close with the caller's",
    });
    await unhandled.assertNone();
  });
  afterAll(async () => {
    unhandled.stop();
    other.disconnect();
    await server.stop();
  });
  return { connect };
}

/** The body that sells one piece of a stock. */
export const sell = (stock: string) => async (tx: Transaction<Redis>) => {
  if (Number(await tx.redis.get(stock)) <= 0) return "sold out";
  tx.multi.decr(stock);
  return "sold";
};
