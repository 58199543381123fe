import pTimeout from "p-timeout";
import { SCAN_COUNT } from "../defaults.ts";
import { isReplyError, type Place } from "../redis/driver.ts";
import { listOf } from "../redis/fields.ts";
import { orAbort } from "../util/abort.ts";
import { customTimers } from "../util/real-timers.ts";

/** Which keys of a database to scan. */
export interface ScanPlan {
  readonly pattern: string;
  /** Left out: keys of every type. */
  readonly type?: "hash" | undefined;
  /** ms for the answer to one step. */
  readonly timeout: number;
  /** Why a step was not answered. */
  readonly trouble: () => Error;
  readonly signal: AbortSignal | undefined;
}

/**
 * The keys of one server, in steps that keep it busy for a fraction of a millisecond each. A step
 * may find none.
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
      // The driver has given up the step, but its errors do not say where a connection leads.
      throw isReplyError(error) ? error : trouble();
    });
    const late = (): never => {
      throw trouble();
    };
    const answer = pTimeout(told, { milliseconds: timeout, fallback: late, customTimers });
    const [next, keys] = listOf(await orAbort(signal, answer));
    // A finished scan's cursor is 0, whatever keys the last step found.
    cursor = String(next);
    yield listOf(keys).map(String);
  } while (cursor !== "0");
}

/**
 * The latest texts, between `most` and twice as many. While Redis shrinks its table, SCAN may name
 * a key again shortly after the first time; earlier texts need not be remembered.
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
