import { findCommand, REDIS_COMMANDS, serverCommand } from "./command.ts";
import { redisInContainer } from "./container.ts";
import { installRedis, whyNotInstall } from "./install.ts";
import { launchServer } from "./launch.ts";
import type { RedisServer } from "./server.ts";

export { type LaunchOptions, launchServer } from "./launch.ts";
export type { LocalServer, RedisServer } from "./server.ts";
export { serverCommand };

/**
 * A Redis for the demo, the tests and the benchmarks, by the first way that works:
 *
 * 1. the environment variable `REDIS_URL`: that server is used as it is; `stop()` does nothing and
 *    `args` do not apply;
 * 2. a `redis-server` or `valkey-server` on the PATH, launched as in {@link launchServer};
 * 3. a container, if a Docker answers, as in {@link redisInContainer}; `TEST_REDIS_IMAGE` names
 *    another image than redis:7-alpine;
 * 4. on Debian or Ubuntu, as root, the package redis-server through apt-get, without starting its service.
 *
 * `HOLDFAST_NO_INSTALL=1` turns off the last two, which download software.
 *
 * @param options.args more arguments for a launched server, such as `["--maxmemory", "50mb"]`
 * @param options.say gets one line before anything is downloaded; default: writes to stderr
 * @throws Error that names all these ways if none of them works, or says why the server did not
 * start
 */
export async function findRedis(
  options: { args?: string[]; say?: (line: string) => void } = {},
): Promise<RedisServer> {
  const { REDIS_URL: url } = process.env;
  if (url) return serverAt(url);

  const launch = options.args ? { args: options.args } : {};
  if (serverCommand() !== null) return launchServer(launch);

  const say = options.say ?? ((line) => void process.stderr.write(`${line}\n`));
  if (process.env.HOLDFAST_NO_INSTALL === "1")
    throw new Error(`${NO_REDIS}\n(HOLDFAST_NO_INSTALL=1 is set.)`);

  const contained = await redisInContainer({ ...launch, say }).catch((error: Error) => error);
  if (!(contained instanceof Error)) return contained;

  const obstacle = whyNotInstall();
  if (obstacle !== null)
    throw new Error(
      `${NO_REDIS}\n(No container: ${contained.message}. Not installed by itself: ${obstacle}.)`,
    );

  await installRedis(say);
  // Debian installs into /usr/bin, which an unusual PATH may leave out.
  const command = serverCommand() ?? findCommand(REDIS_COMMANDS, "/usr/bin");
  if (command === null) throw new Error(`${NO_REDIS}\n(apt-get succeeded, but brought no redis-server.)`);
  return launchServer({ ...launch, command });
}

const NO_REDIS = [
  "No Redis found. Any one of these will do:",
  "  - set REDIS_URL to a running Redis, e.g. REDIS_URL=redis://127.0.0.1:6379",
  "  - put redis-server or valkey-server on the PATH; a private one is then started and stopped as needed",
  "  - let Docker answer; without HOLDFAST_NO_INSTALL=1, a container of redis:7-alpine (or TEST_REDIS_IMAGE) is started",
  "  - on Debian or Ubuntu, as root and without HOLDFAST_NO_INSTALL=1, the package redis-server is installed with apt-get",
].join("\n");

function serverAt(url: string): RedisServer {
  const { protocol, hostname, port } = URL.canParse(url)
    ? new URL(url)
    : { protocol: "", hostname: "", port: "" };
  if (!/^rediss?:$/.test(protocol) || hostname === "")
    throw new Error(`REDIS_URL must look like redis://host:port, received '${url}'`);
  // A URL writes an IPv6 address in brackets; sockets want it bare.
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  return { url, host, port: port === "" ? 6379 : Number(port), stop: async () => {} };
}
