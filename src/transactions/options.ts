import { TIMER_MAX, TRANSACTION_RETRIES } from "../defaults.ts";
import { checkCount, checkObject, checkSignal, refuse } from "../validate.ts";

/** How a transaction of `optimistic` is tried. */
export interface OptimisticOptions {
  /** How often the body may run again after a conflict or a lost connection. Default: 16. Infinity is allowed. */
  retries?: number | undefined;
  /** Ends it before EXEC was sent: the call rejects with `signal.reason`, and nothing is written. */
  signal?: AbortSignal | undefined;
}

export function checkTransaction(
  keys: unknown,
  body: unknown,
  options: unknown,
): { keys: readonly string[]; retries: number; signal: AbortSignal | undefined } {
  const what = "Cannot run a transaction";
  if (!Array.isArray(keys)) throw refuse(TypeError, what, "keys", "an array of strings", keys);
  if (keys.length === 0) throw new RangeError(`${what}: keys must name one key at least`);
  for (const [index, key] of keys.entries()) {
    if (typeof key !== "string") throw refuse(TypeError, what, `keys[${index}]`, "a string", key);
    if (key === "") throw refuse(RangeError, what, `keys[${index}]`, "a non-empty string", key);
  }
  if (typeof body !== "function") throw refuse(TypeError, what, "body", "a function", body);
  const { retries, signal } = checkObject(what, options, ["retries", "signal"]) as OptimisticOptions;
  if (retries !== Number.POSITIVE_INFINITY) checkCount(what, "retries", retries, TIMER_MAX);
  checkSignal(what, signal);
  return { keys: [...keys], retries: retries ?? TRANSACTION_RETRIES, signal };
}
