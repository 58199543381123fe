const listening = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls `listener` when the signal aborts, and returns how to stop that. One listener per signal, however many wait on
 * it: a thousand waiters with one shutdown signal must not trip Node's warning about a leak.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  let listeners = listening.get(signal);
  if (!listeners) {
    const set = new Set<() => void>();
    listeners = set;
    listening.set(signal, set);
    const fire = (): void => {
      listening.delete(signal);
      for (const one of [...set]) one();
    };
    signal.addEventListener("abort", fire, { once: true });
    removers.set(set, () => {
      listening.delete(signal);
      signal.removeEventListener("abort", fire);
    });
  }
  const mine = listeners;
  mine.add(listener);
  return () => {
    if (mine.delete(listener) && mine.size === 0) removers.get(mine)?.();
  };
}

const removers = new WeakMap<Set<() => void>, () => void>();

/** The outcome of some work, or a rejection with the signal's reason as soon as it aborts. The work goes on then, unheard. */
export function orAbort<T>(signal: AbortSignal | undefined, work: PromiseLike<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const unlisten = signal && onAbort(signal, () => reject(signal.reason));
    if (signal?.aborted) reject(signal.reason);
    work.then(resolve, reject).then(unlisten);
  });
}
