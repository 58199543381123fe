import { AsyncResource } from "node:async_hooks";

const resource = new AsyncResource("Holdfast", { requireManualDestroy: true });

/**
 * Runs something outside of any caller's asynchronous context: the application's listeners, and
 * code that makes timers and connections which outlive the call.
 *
 * A listener would run in the scope of the caller that happened to arm the client's one timer or to
 * send a command, and a lock taken there would be borrowed from another caller's body. A timer or a
 * connection keeps the context in which it was made, with all `AsyncLocalStorage` stores of that
 * caller, such as its request, for its own life, which is the client's.
 */
export function detached<T>(work: () => T): T {
  return resource.runInAsyncScope(work);
}
