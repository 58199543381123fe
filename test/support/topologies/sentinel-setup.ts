import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Redis } from "ioredis";
import type { LaunchOptions } from "../../../tools/redis.ts";

/** The name under which the sentinels watch the primary. */
export const GROUP = "holdfast";

/** A replica's first copy begins at once; Redis would wait 5 s for more replicas. */
export const SERVER_ARGS = ["--repl-diskless-sync-delay", "0"];

/** What a sentinel is launched with. It writes into its file what it learns, and knows it after a restart. */
export function sentinelOptions(given: {
  primaryPort: number;
  quorum: number;
  downAfter: number;
}): LaunchOptions {
  const config = [
    `sentinel monitor ${GROUP} 127.0.0.1 ${given.primaryPort} ${given.quorum}`,
    `sentinel down-after-milliseconds ${GROUP} ${given.downAfter}`,
    `sentinel failover-timeout ${GROUP} 3000`,
    "",
  ].join("\n");
  return {
    args: ["--sentinel"],
    async prepare(dir) {
      const configFile = join(dir, "sentinel.conf");
      await writeFile(configFile, config);
      return { configFile };
    },
  };
}

/**
 * Has a sentinel look around every 100 ms, and speak to the others every `publishPeriod` ms. By itself it takes up to
 * 10 s; before version 7 that cannot be set, and things are slow.
 *
 * A sentinel that has heard of no failover for four periods makes a replica of a server that another one has just
 * promoted, and that one looks only once a second: a short period is for a group in which nothing happens yet.
 */
export async function hurry(sentinel: Redis, publishPeriod: number): Promise<void> {
  const periods = { info: 100, ping: 100, ask: 100, publish: publishPeriod };
  const words = Object.entries(periods).flatMap(([what, ms]) => [`${what}-period`, `${ms}`]);
  await sentinel.call("SENTINEL", "DEBUG", ...words).catch(() => {});
}
