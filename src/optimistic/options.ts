import { checkFilled, checkOptions, count, refuse, signal } from "../api/validate.ts";
import { TRANSACTION_RETRIES } from "../defaults.ts";
import { TIMER_MAX } from "../util/timers.ts";

/** How often `optimistic` tries a transaction. */
export interface OptimisticOptions {
  /**
   * How often the body may run again after a conflict or a lost connection. Default: 16. Infinity
   * is allowed.
   */
  retries?: number | undefined;
  /** Ends the call before EXEC is sent: it rejects with `signal.reason`, and nothing is written. */
  signal?: AbortSignal | undefined;
}

const RETRIES = count(TIMER_MAX, TRANSACTION_RETRIES);
const RULES = {
  retries: {
    ...RETRIES,
    fits: (value: unknown) => value === Number.POSITIVE_INFINITY || RETRIES.fits(value),
  },
  signal,
};

export function checkTransaction(
  keys: unknown,
  body: unknown,
  options: unknown,
): { keys: readonly string[]; retries: number; signal: AbortSignal | undefined } {
  const what = "Cannot run a transaction";
  if (!Array.isArray(keys)) throw refuse(TypeError, what, "keys", "an array of strings", keys);
  if (keys.length === 0) throw new RangeError(`${what}: keys must name one key at least`);
  const watched = Array.from(keys, (key, index) => checkFilled(what, `keys[${index}]`, key));
  if (typeof body !== "function") throw refuse(TypeError, what, "body", "a function", body);
  return { keys: watched, ...checkOptions(what, RULES, options) };
}
