import pTimeout from "p-timeout";
import type { ClusterLike, RedisLike } from "../api/redis.ts";
import { SCAN_COUNT } from "../defaults.ts";
import { listOf } from "../redis/fields.ts";
import { withoutCommand } from "../redis/trouble.ts";
import { isCluster } from "../redis/types.ts";
import { orAbort } from "../util/abort.ts";
import { customTimers } from "../util/real-timers.ts";

/** What of a database is looked at. */
export interface ScanPlan {
  readonly pattern: string;
  /** Left out: keys of every type. */
  readonly type?: "hash" | undefined;
  /** ms that one step may take to be answered. */
  readonly timeout: number;
  /** Why a step that was not answered was not. */
  readonly trouble: () => Error;
  readonly signal: AbortSignal | undefined;
}

/** The connections whose databases together have all keys: the server, or the primaries of a Cluster. */
export const primariesOf = (redis: RedisLike | ClusterLike): readonly RedisLike[] =>
  isCluster(redis) ? redis.nodes("master") : [redis];

/**
 * The keys of one server, in steps that keep it busy for a fraction of a millisecond each. A step
 * may have found none.
 */
export async function* scan(
  redis: RedisLike,
  { pattern, type, timeout, trouble, signal }: ScanPlan,
): AsyncGenerator<string[], void, undefined> {
  const only = type === undefined ? [] : ["TYPE", type];
  let cursor = "0";
  do {
    const step = redis.callBuffer("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT, ...only);
    const told = step.catch((error: unknown) => {
      // ioredis, which has given it up, says of no connection where that leads.
      throw error instanceof Error && error.name === "ReplyError" ? withoutCommand(error) : trouble();
    });
    const late = (): never => {
      throw trouble();
    };
    const answer = pTimeout(told, { milliseconds: timeout, fallback: late, customTimers });
    const [next, keys] = listOf(await orAbort(signal, answer));
    // Redis gives a cursor that was used up as 0, whatever keys it still found.
    cursor = String(next);
    yield listOf(keys).map(String);
  } while (cursor !== "0");
}

/**
 * The texts that came last, `most` at least and twice as many at the most. While Redis makes its
 * table smaller, SCAN names a key again that it has named before, soon behind it: what has come
 * long ago need not be remembered.
 */
export class Recent {
  readonly #most: number;
  #latest = new Set<string>();
  #before = new Set<string>();

  constructor(most: number) {
    this.#most = most;
  }

  /** False: it came before. */
  add(text: string): boolean {
    if (this.#latest.has(text) || this.#before.has(text)) return false;
    if (this.#latest.size === this.#most) {
      this.#before = this.#latest;
      this.#latest = new Set();
    }
    this.#latest.add(text);
    return true;
  }
}
