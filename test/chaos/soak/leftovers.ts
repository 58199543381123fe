import type { Redis } from "ioredis";
import { openConnection } from "../../support/servers/connection.ts";
import { KEY_PREFIX } from "../arenas/arena.ts";
import type { Wires } from "../arenas/wires.ts";

/**
 * What the docs say stays without a TTL: the clock of tokens, and the number of a semaphore that
 * setPermits has set.
 */
const DOCUMENTED = [`${KEY_PREFIX}holdfast:clock`, `${KEY_PREFIX}holdfast:semaphore:{slots}`];
/** Of a result: they have a TTL of up to 60 s. */
const ENDING = /^chaos:holdfast:remember:\{\w+\}:(result|last)$/;

/** What is left in Redis of workers that have ended. */
export interface Leftovers {
  /** Keys, but the documented ones and those of results that end. */
  readonly keys: readonly string[];
  readonly documented: readonly string[];
  readonly channels: readonly string[];
  readonly patterns: number;
  /** Beside the one that looks. */
  readonly connections: number;
}

export async function leftovers(wires: Wires): Promise<Leftovers> {
  const redis: Redis = openConnection(wires.address(0)) as Redis;
  try {
    const all = (await redis.keys("*")).sort();
    const ttls = await Promise.all(all.map((key) => redis.pttl(key)));
    const keys = all.filter((key, place) => !(ENDING.test(key) && (ttls[place] ?? 0) > 0));
    const clients = (await redis.client("LIST")) as string;
    return {
      keys: keys.filter((key) => !DOCUMENTED.includes(key)),
      documented: keys.filter((key) => DOCUMENTED.includes(key)),
      channels: (await redis.pubsub("CHANNELS")) as string[],
      patterns: (await redis.pubsub("NUMPAT")) as unknown as number,
      connections: clients.trim().split("\n").length - 1,
    };
  } finally {
    redis.disconnect();
  }
}
