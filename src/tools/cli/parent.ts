/** Between two checks, in ms. */
const PERIOD = 1_000;

/**
 * Resolves when the process that has started this one ends after this call. It never does for a
 * process whose parent is process 1, as of a supervisor, or had ended before, as by `setsid --fork`.
 * It keeps no process alive.
 */
export function parentEnded(signal: AbortSignal): Promise<void> {
  const parent = process.ppid;
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      if (process.ppid !== parent) resolve();
    }, PERIOD).unref();
    signal.addEventListener("abort", () => clearInterval(timer));
  });
}
