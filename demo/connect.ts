import { Redis } from "ioredis";

/**
 * Connects to Redis.
 *
 * @param keyPrefix stands before all keys of this connection
 * @throws Error that says where Redis was expected, and why it cannot be reached
 */
export async function connect(url: string, keyPrefix = ""): Promise<Redis> {
  // A demo would rather fail than wait for a Redis that is gone: one more try for a command, not twenty.
  const redis = new Redis(url, { lazyConnect: true, keyPrefix, maxRetriesPerRequest: 1 });
  let trouble: Error | undefined;
  redis.on("error", (error) => {
    trouble = error;
  });
  try {
    await redis.connect();
    return redis;
  } catch (cause) {
    redis.disconnect();
    const { host, port } = redis.options;
    throw new Error(`Redis cannot be reached at ${host}:${port}: ${(trouble ?? cause) as Error}`, { cause });
  }
}
