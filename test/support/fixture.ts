import { randomUUID } from "node:crypto";
import { Redis, type RedisOptions } from "ioredis";
import { createLockClient, type LockClient, type LockClientOptions } from "../../src/index.ts";
import { carried, carrier } from "./carrier.ts";
import { PATIENT_REPLY } from "./first-reply.ts";
import type { Connection } from "./servers/connection.ts";

/** ioredis 6 has two reply mappings; the tests use ioredis 5's. */
type ConnectionOptions = Omit<RedisOptions, "replyMapping">;

/** A connection and a lock client on it, as one process would have. */
export interface Party {
  readonly redis: Redis;
  readonly locks: LockClient;
}

/** The shared test server. */
export function testUrl(): string {
  const { TEST_REDIS_URL } = process.env;
  if (!TEST_REDIS_URL)
    throw new Error("TEST_REDIS_URL is not set: run the tests with vitest, which starts a Redis");
  return TEST_REDIS_URL;
}

/** A lock name that no other test uses. */
export function freshName(label = "lock"): string {
  return `test:${label}:${randomUUID()}`;
}

/**
 * Makes parties and closes all of them together; one per test file, with `afterAll(parties.close)`.
 */
export class Parties {
  readonly #all: Party[] = [];

  async join(
    options: {
      url?: string;
      redis?: ConnectionOptions;
      client?: LockClientOptions;
      /** Makes the connection, instead of `url` and `redis`. */
      connect?: (() => Connection) | undefined;
      /** Makes the client, if it is not made from that one connection. */
      create?: (redis: Redis, client: LockClientOptions) => LockClient;
    } = {},
  ): Promise<Party> {
    // A Cluster has all the methods that tests call.
    const redis = options.connect
      ? (options.connect() as Redis)
      : new Redis(options.url ?? testUrl(), { retryStrategy: () => 20, ...options.redis });
    redis.on("error", () => {});
    const { create = (one: Redis, settings) => createLockClient(carrier(one), settings) } = options;
    const client = { replyTimeout: PATIENT_REPLY, ...options.client };
    const party = { redis, locks: create(redis, client) };
    this.#all.push(party);
    if (!options.redis?.lazyConnect) {
      await redis.ping();
      await carried(redis);
    }
    return party;
  }

  /** Resolves when each has read the answers to all commands that it has sent. */
  readonly read = (): Promise<unknown> =>
    Promise.all(this.#all.map(({ redis }) => redis.ping().catch(() => {})));

  readonly close = async (): Promise<void> => {
    for (const { redis, locks } of this.#all.splice(0)) {
      await locks.close({ grace: 0 });
      redis.disconnect();
    }
  };
}
