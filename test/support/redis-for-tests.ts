import { Redis } from "ioredis";
import { fencingLua } from "../../src/fencing/lua.generated.ts";
import { redissonLua } from "../../src/kinds/redisson-lua.generated.ts";
import { spinLua } from "../../src/kinds/spin-lua.generated.ts";
import { quorumLua } from "../../src/quorum/lua.generated.ts";
import * as ofClients from "../../src/redis/client-lua.generated.ts";
import * as ofLocks from "../../src/redis/lua.generated.ts";
import { uiLua } from "../../src/tools/ui/lua.generated.ts";
import { redisInContainer } from "../../tools/redis/container.ts";
import { findRedis, type RedisServer, serverCommand } from "../../tools/redis/index.ts";
import { installRedis, whyNotInstall } from "../../tools/redis/install.ts";
import { loadScripts } from "./load-scripts.ts";

const scripts = [
  ...Object.values({ ...ofClients, ...ofLocks }),
  fencingLua,
  quorumLua,
  redissonLua,
  spinLua,
  uiLua,
];

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
  await loadScripts(connection, ...scripts);
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
