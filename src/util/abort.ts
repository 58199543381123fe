import pTimeout from "p-timeout";
import { clocks } from "./clock.ts";
import { clearTimeout, customTimers, setImmediate, setTimeout } from "./real-timers.ts";

/** Notified when a signal aborts. */
export interface Abortable {
  aborted(reason: unknown): void;
}

/**
 * The listeners of each signal. One listener per signal, however many calls wait on it: a thousand
 * waiters with one shutdown signal must not trigger Node's warning about a leak. Most have one
 * signal each.
 */
const known = new WeakMap<AbortSignal, { told: Abortable | Set<Abortable>; readonly fire: () => void }>();

/**
 * Until `unlisten`. An object is notified once; a signal that has already aborted notifies none.
 * Uses the given signal, not the event's target, which differs for an object that delegates to an
 * AbortSignal.
 */
export function listen(signal: AbortSignal, one: Abortable): void {
  const entry = known.get(signal);
  if (!entry) {
    const fire = (): void => {
      const told = known.get(signal)?.told;
      known.delete(signal);
      if (told instanceof Set) for (const each of [...told]) each.aborted(signal.reason);
      else told?.aborted(signal.reason);
    };
    // In this order: a signal of the application's own making may throw.
    signal.addEventListener("abort", fire, { once: true });
    known.set(signal, { told: one, fire });
  } else if (entry.told instanceof Set) entry.told.add(one);
  else entry.told = new Set([entry.told, one]);
}

export function unlisten(signal: AbortSignal, one: Abortable): void {
  const entry = known.get(signal);
  if (!entry) return;
  const { told, fire } = entry;
  const isLast = told instanceof Set ? told.delete(one) && told.size === 0 : told === one;
  if (!isLast) return;
  known.delete(signal);
  try {
    signal.removeEventListener("abort", fire);
  } catch {
    // The signal belongs to the application, whose call has ended. A leftover listener does
    // nothing.
  }
}

/** Calls `listener` when the signal aborts, and returns a function that stops it. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  const one = { aborted: listener };
  listen(signal, one);
  return () => unlisten(signal, one);
}

/**
 * The outcome of some work, or a rejection with the signal's reason as soon as it aborts. The work
 * then continues, and its outcome is ignored.
 */
export function orAbort<T>(signal: AbortSignal | undefined, work: PromiseLike<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = signal && onAbort(signal, () => reject(signal.reason));
    if (signal?.aborted) reject(signal.reason);
    work.then(resolve, reject).then(stop);
  });
}

/**
 * The functions that end the pauses under way, and when each ends on the monotonic clock: a test
 * that advances the clock calls them.
 */
export const pauses = new Map<() => void, number>();

/**
 * Waits `ms` ms. Rejects with the signal's reason when it aborts first. `ends`: contains, during
 * the pause, the function that ends it early.
 */
export function pause(
  ms: number,
  signal: AbortSignal | undefined,
  ends: Set<() => void> | null = null,
): Promise<void> {
  let end = (): void => {};
  const over = new Promise<void>((resolve) => {
    end = resolve;
  });
  const timer = setTimeout(end, ms);
  pauses.set(end, clocks.mono.now() + ms);
  ends?.add(end);
  return orAbort(signal, over).finally(() => {
    clearTimeout(timer);
    pauses.delete(end);
    ends?.delete(end);
  });
}

/** Waits for something, but at most `ms` ms; p-timeout wants a positive number. */
export const atMost = (done: PromiseLike<unknown>, ms: number): Promise<unknown> =>
  pTimeout(done, {
    milliseconds: Math.max(1, ms),
    fallback: () => {},
    customTimers,
  });

/**
 * At most `ms` ms from now, but after the messages that came while this process was paused: they
 * are not late, this process is.
 */
export function within(done: Promise<void>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => setImmediate(resolve), ms);
    done.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
