import { createHash } from "node:crypto";
import type { Redis } from "ioredis";

/** A Lua script with one key: sent by its hash, and in full if the server does not know it yet. */
export function script(
  lua: string,
): (redis: Redis, key: string, ...args: (string | number)[]) => Promise<unknown> {
  const hash = createHash("sha1").update(lua).digest("hex");
  return async (redis, key, ...args) => {
    try {
      return await redis.evalsha(hash, 1, key, ...args);
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
      return redis.eval(lua, 1, key, ...args);
    }
  };
}
