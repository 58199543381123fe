import pTimeout from "p-timeout";

/** What a signal tells, and the one listener through which it does. */
interface Waiting {
  readonly listeners: Set<() => void>;
  readonly fire: () => void;
}

const known = new WeakMap<AbortSignal, Waiting>();

/**
 * Calls `listener` when the signal aborts, and returns how to stop that. One listener per signal, however many wait on
 * it: a thousand waiters with one shutdown signal must not trip Node's warning about a leak.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  let waiting = known.get(signal);
  if (!waiting) {
    const listeners = new Set<() => void>();
    const fire = (): void => {
      known.delete(signal);
      for (const one of [...listeners]) one();
    };
    waiting = { listeners, fire };
    known.set(signal, waiting);
    signal.addEventListener("abort", fire, { once: true });
  }
  const { listeners, fire } = waiting;
  listeners.add(listener);
  return () => {
    if (!listeners.delete(listener) || listeners.size > 0) return;
    known.delete(signal);
    signal.removeEventListener("abort", fire);
  };
}

/** The outcome of some work, or a rejection with the signal's reason as soon as it aborts. The work goes on then, unheard. */
export function orAbort<T>(signal: AbortSignal | undefined, work: PromiseLike<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const unlisten = signal && onAbort(signal, () => reject(signal.reason));
    if (signal?.aborted) reject(signal.reason);
    work.then(resolve, reject).then(unlisten);
  });
}

/** Waits so many ms. Rejects with the signal's reason when it aborts first. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: NodeJS.Timeout;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  return orAbort(signal, over).finally(() => clearTimeout(timer));
}

/** Waits for something, but no longer than this; p-timeout wants a positive number. */
export const atMost = (done: PromiseLike<unknown>, ms: number): Promise<unknown> =>
  pTimeout(done, { milliseconds: Math.max(1, ms), fallback: () => {} });
