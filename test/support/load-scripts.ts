import type { Redis } from "ioredis";
import type { Script } from "../../src/redis/script.ts";

/** From now on the server knows these scripts: a command of one that it does not know is sent twice. */
export async function loadScripts(
  redis: Redis,
  ...groups: readonly Readonly<Record<string, Script>>[]
): Promise<void> {
  for (const group of groups) for (const { lua } of Object.values(group)) await redis.script("LOAD", lua);
}
