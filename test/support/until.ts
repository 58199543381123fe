import { setTimeout as delay } from "node:timers/promises";
import pTimeout from "p-timeout";

/** A type without its falsy values. */
export type Truthy<T> = Exclude<T, false | 0 | 0n | "" | null | undefined>;

export interface UntilOptions {
  /**
   * Milliseconds; default 30 000: an event that comes at once on a quiet machine may take seconds
   * on a busy one.
   */
  timeout?: number;
  /** What is awaited, for the error message; default: the condition's source. */
  what?: string;
}

/**
 * Calls the condition every 5 ms until the result is truthy, and resolves with it. Rejects with the
 * condition's error, or when the time is over, even if the condition itself hangs.
 *
 * @example await until(() => redis.exists(key), { what: "the lock to be taken" });
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  { timeout = 30_000, what = sourceOf(condition) }: UntilOptions = {},
): Promise<Truthy<T>> {
  // Created here, not when the time is over: its stack then names the line that waited.
  const tooLate = new Error(`Waited ${timeout} ms in vain for ${what}`);
  let isOver = false;
  const poll = async (): Promise<Truthy<T>> => {
    for (;;) {
      const answer = await condition();
      if (answer) return answer as Truthy<T>;
      if (isOver) throw tooLate;
      await delay(5);
    }
  };
  try {
    return await pTimeout(poll(), { milliseconds: timeout, message: tooLate });
  } finally {
    isOver = true;
  }
}

function sourceOf(condition: () => unknown): string {
  return condition.toString().replace(/\s+/g, " ").slice(0, 120);
}
