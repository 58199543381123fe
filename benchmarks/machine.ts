import { existsSync, readFileSync } from "node:fs";
import { cpus } from "node:os";
import type { Redis } from "ioredis";
import { javaVersion } from "./crew/java.ts";
import { busyShare, type Done, readDone } from "./figures/busy.ts";
import type { Machine } from "./figures/result.ts";
import { serverState, serverVersion } from "./redis/server-state.ts";

/** What the figures were measured on. */
export async function describeMachine(redis: Redis): Promise<Machine> {
  const processors = cpus();
  return {
    cpu: processors[0]?.model.trim() ?? "unknown",
    cores: processors.length,
    node: process.version,
    redis: await serverVersion(redis),
    java: javaVersion(),
    date: new Date().toISOString().slice(0, 10),
  };
}

/**
 * Watches who uses the machine from now on; asked at the end, it answers as {@link busyShare}. Only
 * Linux tells: null elsewhere.
 */
export async function watchMachine(redis: Redis): Promise<() => Promise<number | null>> {
  if (!existsSync("/proc/self/stat")) return async () => null;
  const look = async (): Promise<Done> => {
    const { cpu } = await serverState(redis);
    return readDone(readFileSync("/proc/stat", "utf8"), readFileSync("/proc/self/stat", "utf8"), cpu);
  };
  const before = await look();
  return async () => busyShare(before, await look());
}
