const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const doomed = new Set<() => void>();

/**
 * Calls `end` when this process ends, also by SIGINT, SIGTERM or SIGHUP. It must be synchronous:
 * nothing else runs in an 'exit' hook. There is one hook for all, because Node warns from the
 * eleventh listener on; and none while nothing is to end.
 *
 * @returns a function that cancels this, for a server that has ended by itself
 */
export function endWithProcess(end: () => void): () => void {
  if (doomed.size === 0) {
    process.on("exit", endAll);
    // Before the others, because a listener registered with `once` is gone after its turn.
    for (const signal of SIGNALS) process.prependListener(signal, endBySignal);
  }
  doomed.add(end);
  return () => {
    if (!doomed.delete(end) || doomed.size > 0) return;
    process.off("exit", endAll);
    for (const signal of SIGNALS) process.off(signal, endBySignal);
  };
}

function endAll(): void {
  for (const end of doomed) end();
  doomed.clear();
}

/**
 * A signal without a listener ends a process without 'exit'. Another listener decides what the
 * signal means, and 'exit' follows if it ends the process. Without one, the process must end as it
 * would without this hook.
 */
function endBySignal(signal: NodeJS.Signals): void {
  if (process.listenerCount(signal) > 1) return;
  endAll();
  process.off(signal, endBySignal);
  process.kill(process.pid, signal);
}
