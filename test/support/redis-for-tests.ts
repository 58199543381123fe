import { Redis } from "ioredis";
import { redisInContainer } from "../../tools/redis/container.ts";
import { findRedis, type RedisServer, serverCommand } from "../../tools/redis/index.ts";
import { installRedis, whyNotInstall } from "../../tools/redis/install.ts";
import { allScripts, loadScripts } from "./load-scripts.ts";

const say = (line: string) => void process.stderr.write(`${line}\n`);

/**
 * One Redis for all tests that do not break it: its address is in `process.env.TEST_REDIS_URL`.
 * `TEST_REDIS=container` runs it in a container, even if there is another Redis.
 *
 * It knows all scripts, and no test makes it forget them. A command with an unknown script is sent
 * twice, and arrives after a command whose script another file's test has loaded in between. Most
 * tests are not about the effect on the order of callers.
 */
export async function setup(): Promise<() => Promise<void>> {
  const redis = await mainRedis();
  process.env.TEST_REDIS_URL = redis.url;
  const connection = new Redis(redis.url);
  await loadScripts(connection, ...allScripts);
  await connection.quit();
  // The suites that break their server launch their own, and need its program wherever the main one
  // runs.
  if (serverCommand() === null && whyNotInstall() === null) await installRedis(say);
  return () => redis.stop();
}

function mainRedis(): Promise<RedisServer> {
  const { TEST_REDIS: where = "" } = process.env;
  if (where === "container") return redisInContainer({ say });
  if (where !== "") throw new Error(`TEST_REDIS must be "container" or unset, received "${where}"`);
  return findRedis();
}
