import { AsyncResource } from "node:async_hooks";

const resource = new AsyncResource("Holdfast", { requireManualDestroy: true });

/**
 * Runs the caller's listeners outside of every scope. Without it they would run in the scope of the caller that happened
 * to arm the client's one timer or to send a command, and a lock taken there would be borrowed from a stranger's body.
 */
export function outside<T>(listener: () => T): T {
  return resource.runInAsyncScope(listener);
}
