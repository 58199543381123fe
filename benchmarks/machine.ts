import { cpus } from "node:os";
import type { Redis } from "ioredis";
import { javaVersion } from "./crew/java.ts";
import type { Machine } from "./figures/result.ts";
import { serverVersion } from "./redis/server-state.ts";

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
