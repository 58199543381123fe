import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { LaunchOptions } from "../../../tools/redis/index.ts";

/** The name under which the sentinels watch the primary. */
export const GROUP = "holdfast";

/** What a server is launched with; a replica of `primary` if that is given. */
export function serverOptions(primary?: { host: string; port: number }): LaunchOptions {
  // The first copy begins at once.
  return { args: ["--repl-diskless-sync-delay", "0", ...(primary ? copying(primary) : [])] };
}

/** Makes a server a replica of this primary from its first moment. */
export const copying = ({ host, port }: { host: string; port: number }): string[] => [
  "--replicaof",
  host,
  `${port}`,
];

/** The options of a sentinel. It writes its knowledge into its file, and has it after a restart. */
export function sentinelOptions(given: {
  primaryPort: number;
  quorum: number;
  downAfter: number;
}): LaunchOptions {
  const config = [
    `sentinel monitor ${GROUP} 127.0.0.1 ${given.primaryPort} ${given.quorum}`,
    `sentinel down-after-milliseconds ${GROUP} ${given.downAfter}`,
    `sentinel failover-timeout ${GROUP} 2000`,
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
