import pTimeout from "p-timeout";
import { clocks } from "./clock.ts";
import { clearTimeout, customTimers, setImmediate, setTimeout } from "./real-timers.ts";

/** What is told that a signal aborts. */
export interface Abortable {
  aborted(reason: unknown): void;
}

/**
 * By signal, what is told. One listener per signal, however many wait on it: a thousand waiters
 * with one shutdown signal must not trip Node's warning about a leak. Most have one signal each.
 */
const known = new WeakMap<AbortSignal, { told: Abortable | Set<Abortable>; readonly fire: () => void }>();

/**
 * Until `unlisten`. An object is told once, and a signal that aborted before tells nobody. The
 * signal is the one that was given, and not the event's target: what delegates to an AbortSignal
 * has another one there.
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
    // In this order: a signal that somebody has written may throw.
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
    // It belongs to the application, whose call has ended by now. What stays there tells nobody.
  }
}

/** Calls `listener` when the signal aborts, and returns how to stop that. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  const one = { aborted: listener };
  listen(signal, one);
  return () => unlisten(signal, one);
}

/**
 * The outcome of some work, or a rejection with the signal's reason as soon as it aborts. The work
 * goes on then, unheard.
 */
export function orAbort<T>(signal: AbortSignal | undefined, work: PromiseLike<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = signal && onAbort(signal, () => reject(signal.reason));
    if (signal?.aborted) reject(signal.reason);
    work.then(resolve, reject).then(stop);
  });
}

/**
 * What ends the pauses that are under way, and when it does on the monotonic clock: a test that
 * puts that on ends them itself.
 */
export const pauses = new Map<() => void, number>();

/**
 * Waits so many ms. Rejects with the signal's reason when it aborts first. `ends`: gets what ends
 * it early, while it lasts.
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

/** Waits for something, but no longer than this; p-timeout wants a positive number. */
export const atMost = (done: PromiseLike<unknown>, ms: number): Promise<unknown> =>
  pTimeout(done, {
    milliseconds: Math.max(1, ms),
    fallback: () => {},
    customTimers,
  });

/**
 * At the latest so many ms from now, behind the messages that came while this process stood still:
 * they are not late, we are.
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
