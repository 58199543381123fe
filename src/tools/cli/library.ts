import { EXIT, ExitError } from "./exit-codes.ts";
import { openIoredis } from "./ioredis.ts";
import { openNodeRedis } from "./node-redis.ts";
import type { Open } from "./open.ts";

/**
 * The client library that the project has: ioredis if it has both.
 *
 * @throws ExitError if it has none
 */
export async function library(): Promise<Open> {
  const ioredis = await ifInstalled(() => import("ioredis"));
  if (ioredis) return openIoredis(ioredis);
  const nodeRedis = await ifInstalled(() => import("redis"));
  if (nodeRedis) return openNodeRedis(nodeRedis);
  throw new ExitError(
    EXIT.unavailable,
    "The command holdfast needs a Redis client library in the project, and there is none: npm install ioredis, or npm install redis.",
  );
}

/** Both are optional peer dependencies. */
async function ifInstalled<T>(load: () => Promise<T>): Promise<T | null> {
  try {
    return await load();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    return null;
  }
}
