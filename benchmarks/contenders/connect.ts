import { Redis } from "ioredis";

/** An open connection with the defaults of ioredis. */
export async function connect(url: string): Promise<Redis> {
  const redis = new Redis(url, { lazyConnect: true });
  await redis.connect();
  return redis;
}
