import type { Redis } from "ioredis";
import { fencingLua } from "../../src/fencing/lua.generated.ts";
import { quorumLua } from "../../src/quorum/lua.generated.ts";
import * as ofClients from "../../src/redis/client-lua.generated.ts";
import * as ofLocks from "../../src/redis/lua.generated.ts";
import type { Script } from "../../src/redis/script.ts";
import { uiLua } from "../../src/tools/ui/lua.generated.ts";
import { redissonLua } from "../../src/wires/redisson-lua.generated.ts";
import { spinLua } from "../../src/wires/spin-lua.generated.ts";

/** The scripts of lua/, by folder. */
export const allScripts: readonly Readonly<Record<string, Script>>[] = [
  ...Object.values({ ...ofClients, ...ofLocks }),
  fencingLua,
  quorumLua,
  redissonLua,
  spinLua,
  uiLua,
];

/** Loads these scripts into the server: a command with an unknown script would be sent twice. */
export async function loadScripts(
  redis: Redis,
  ...groups: readonly Readonly<Record<string, Script>>[]
): Promise<void> {
  for (const group of groups) for (const { lua } of Object.values(group)) await redis.script("LOAD", lua);
}
