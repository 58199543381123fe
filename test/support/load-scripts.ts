import type { Redis } from "ioredis";
import type { Script } from "../../src/redis/script.ts";

/** Loads these scripts into the server: a command with an unknown script would be sent twice. */
export async function loadScripts(
  redis: Redis,
  ...groups: readonly Readonly<Record<string, Script>>[]
): Promise<void> {
  for (const group of groups) for (const { lua } of Object.values(group)) await redis.script("LOAD", lua);
}
