import type * as Ioredis from "ioredis";
import type { Open } from "./open.ts";

/** How long a sentinel may take to answer, in ms. */
const SENTINEL = 1_000;

export const openIoredis =
  ({ Redis, Cluster }: typeof Ioredis): Open =>
  async ({ addresses, login, db, isCluster, sentinel, family }, failed) => {
    const { username, password, isTls } = login;
    const admission = {
      ...(username && { username }),
      ...(password && { password }),
      ...(isTls && { tls: {} }),
      family,
    };
    const common = {
      ...admission,
      db,
      lazyConnect: true,
      // By default ioredis 6 waits for up to 5 s between two tries.
      retryStrategy: (tries: number) => Math.min(tries * 50, 2_000),
      // A failover may leave the old primary running, as a replica.
      reconnectOnError: ({ message }: Error) => message.includes("READONLY"),
    };
    const One = inDatabase(Redis, failed);
    const redis = isCluster
      ? new Cluster([...addresses], { lazyConnect: true, redisOptions: admission })
      : sentinel === undefined
        ? new One({ ...common, ...addresses[0] })
        : new One({
            ...common,
            sentinels: [...addresses],
            sentinelCommandTimeout: SENTINEL,
            name: sentinel,
            failoverDetector: true, // otherwise `top` stays at an old primary that only hangs
          });
    // The command that needs the connection reports its other errors.
    redis.on("error", () => {});
    return { redis, use: () => {}, close: () => redis.disconnect() };
  };

type Connection = new (options: Ioredis.RedisOptions) => Ioredis.Redis;

/**
 * If Redis refuses the database, ioredis continues in database 0. That can happen at any reconnect,
 * as rights and settings change. There the lock would exclude no other process, so such a
 * connection is ended before it takes a command; ioredis retries. `failed` receives each error of a
 * connection.
 */
function inDatabase(Redis: typeof Ioredis.Redis, failed: (error: Error) => void): Connection {
  return class InDatabase extends (Redis as Connection) {
    constructor(options: Ioredis.RedisOptions) {
      super(options);
      this.on("error", (error: Error & { command?: { name: string } }) => {
        if (error.command?.name === "select") this.stream.destroy();
        failed(error);
      });
    }

    /** For the lock client's own connections too. */
    override duplicate(options?: Partial<Ioredis.RedisOptions>): Ioredis.Redis {
      return new InDatabase({ ...this.options, ...options });
    }
  };
}
