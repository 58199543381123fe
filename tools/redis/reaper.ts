const doomed = new Set<() => void>();
let listening = false;

/**
 * Has `end` called when this process ends, also by SIGINT, SIGTERM or SIGHUP. It must be synchronous: nothing
 * else runs in an 'exit' hook. There is one hook for all, because Node warns from the eleventh listener on.
 *
 * @returns takes the promise back, for something that has ended by itself
 */
export function endWithProcess(end: () => void): () => void {
  if (!listening) {
    listening = true;
    process.on("exit", endAll);
    // Before the others, because one that listens once is no longer there when its turn is over.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
      process.prependListener(signal, endBySignal);
  }
  doomed.add(end);
  return () => void doomed.delete(end);
}

function endAll(): void {
  for (const end of doomed) end();
  doomed.clear();
}

/**
 * A signal ends a process without 'exit', unless there is a listener for it. Another listener
 * decides what the signal means, and 'exit' follows when it ends the process; without one, the
 * process must end as it would without us.
 */
function endBySignal(signal: NodeJS.Signals): void {
  if (process.listenerCount(signal) > 1) return;
  endAll();
  process.off(signal, endBySignal);
  process.kill(process.pid, signal);
}
