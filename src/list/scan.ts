import pTimeout from "p-timeout";
import { SCAN_COUNT } from "../defaults.ts";
import { isReplyError, type Place } from "../redis/driver.ts";
import { listOf } from "../redis/fields.ts";
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

/**
 * The keys of one server, in steps that keep it busy for a fraction of a millisecond each. A step
 * may have found none.
 */
export async function* scan(
  place: Place,
  { pattern, type, timeout, trouble, signal }: ScanPlan,
): AsyncGenerator<string[], void, undefined> {
  const only = type === undefined ? [] : ["TYPE", type];
  let cursor = "0";
  do {
    const step = place.command(["SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT, ...only]);
    const told = step.catch((error: unknown) => {
      // The library, which has given it up, says of no connection where that leads.
      throw isReplyError(error) ? error : trouble();
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
