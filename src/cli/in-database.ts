import type * as Ioredis from "ioredis";

type Connection = new (options: Ioredis.RedisOptions) => Ioredis.Redis;

/**
 * ioredis goes on in database 0 where Redis refuses another one, as it may at any reconnect: rights and settings change. There the
 * lock would keep nobody out, so such a connection is ended before it takes a command; ioredis tries again. `failed` is told of each
 * error of a connection.
 */
export function inDatabase(Redis: typeof Ioredis.Redis, failed: (error: Error) => void): Connection {
  return class InDatabase extends (Redis as Connection) {
    constructor(options: Ioredis.RedisOptions) {
      super(options);
      this.on("error", (error: Error & { command?: { name: string } }) => {
        if (error.command?.name === "select") this.stream.destroy();
        failed(error);
      });
    }

    /** Those that the lock client makes are so too. */
    override duplicate(options?: Partial<Ioredis.RedisOptions>): Ioredis.Redis {
      return new InDatabase({ ...this.options, ...options });
    }
  };
}
