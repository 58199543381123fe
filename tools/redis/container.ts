import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import type { News, Order } from "./container-keeper.ts";
import type { RedisServer } from "./server.ts";

/**
 * Used unless `TEST_REDIS_IMAGE` names another. Any image with a `redis-server` on its PATH works.
 */
const IMAGE = "redis:7-alpine";

/** Why nothing can run in a container here; null if it can. */
export async function whyNoContainer(): Promise<string | null> {
  const keeper = forkKeeper({});
  return new Promise((resolve) => {
    onNews(keeper, (news) => resolve(typeof news === "object" && "error" in news ? news.error : null));
  });
}

/**
 * A Redis in a container, without persistence, published on the loopback interface unless Docker
 * runs elsewhere. The image is pulled if Docker lacks it. `stop()` removes the container, and so
 * does the end of this process.
 *
 * @param options.args more arguments for the server; later ones override ours
 * @param options.say gets one line before the container starts, because the image may have to be
 * pulled
 * @throws Error if no Docker answers, the image is unavailable, or the server does not start
 */
export function redisInContainer(options: {
  args?: string[];
  say: (line: string) => void;
}): Promise<RedisServer> {
  const { args = [], say } = options;
  const image = process.env.TEST_REDIS_IMAGE || IMAGE;
  const keeper = forkKeeper({ image, args });
  return new Promise((resolve, reject) => {
    onNews(keeper, (news) => {
      if (news === "Docker answers") say(`Starting a Redis in a container of the image ${image} ...`);
      else if ("error" in news) reject(new Error(news.error));
      else resolve(kept(keeper, news));
    });
  });
}

/**
 * Detached, because a Ctrl-C at the terminal is meant for this process; the keeper sees it end and
 * removes the container.
 */
function forkKeeper(order: Order): ChildProcess {
  // TypeScript here, JavaScript in a compiled copy.
  const kind = extname(import.meta.url);
  const script = fileURLToPath(new URL(`./container-keeper${kind}`, import.meta.url));
  const execArgv = kind === ".ts" ? ["--import", "tsx"] : [];
  return fork(script, [JSON.stringify(order)], { execArgv, detached: true, stdio: "ignore" });
}

function onNews(keeper: ChildProcess, tell: (news: News) => void): void {
  keeper.on("message", (news) => tell(news as News));
  const ended = (why: unknown) => tell({ error: `what keeps the container has ended (${why})` });
  keeper.once("error", ended).once("exit", ended);
}

function kept(keeper: ChildProcess, { host, port }: { host: string; port: number }): RedisServer {
  keeper.unref();
  keeper.channel?.unref();
  let stopped: Promise<void> | undefined;
  const stop = async () => {
    // While a caller waits for the end, it must keep this process alive, or the wait would be cut
    // short.
    keeper.ref();
    const exit = keeper.connected ? once(keeper, "exit") : [null];
    if (keeper.connected) keeper.disconnect();
    const [code] = await exit;
    if (code !== 0) throw new Error(`The container of redis://${host}:${port} could not be removed`);
  };
  return {
    url: `redis://${host}:${port}`,
    host,
    port,
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}
