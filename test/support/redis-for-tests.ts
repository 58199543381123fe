import { findRedis } from "../../tools/redis.ts";

/** One Redis for all tests that do not break theirs: its address reaches them as `process.env.TEST_REDIS_URL`. */
export async function setup(): Promise<() => Promise<void>> {
  const redis = await findRedis();
  process.env.TEST_REDIS_URL = redis.url;
  return () => redis.stop();
}
