import { redisInContainer } from "../../tools/redis/container.ts";
import { findRedis, type RedisServer, serverCommand } from "../../tools/redis/index.ts";
import { installRedis, whyNotInstall } from "../../tools/redis/install.ts";

const say = (line: string) => void process.stderr.write(`${line}\n`);

/**
 * One Redis for all tests that do not break theirs: its address reaches them as `process.env.TEST_REDIS_URL`.
 * `TEST_REDIS=container` has it run in a container, whatever else there is.
 */
export async function setup(): Promise<() => Promise<void>> {
  const redis = await mainRedis();
  process.env.TEST_REDIS_URL = redis.url;
  // The suites that break their server launch their own, and need its program wherever the main one runs.
  if (serverCommand() === null && whyNotInstall() === null) await installRedis(say);
  return () => redis.stop();
}

function mainRedis(): Promise<RedisServer> {
  const { TEST_REDIS: where = "" } = process.env;
  if (where === "container") return redisInContainer({ say });
  if (where !== "") throw new Error(`TEST_REDIS must be "container" or unset, received "${where}"`);
  return findRedis();
}
