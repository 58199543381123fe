import { AsyncResource } from "node:async_hooks";

const resource = new AsyncResource("Holdfast", { requireManualDestroy: true });

/**
 * Runs something in no caller's asynchronous context: the application's listeners, and whatever
 * makes timers and connections that outlive the call.
 *
 * A listener would run in the scope of the caller that happened to arm the client's one timer or to
 * send a command, and a lock taken there would be borrowed from a stranger's body. A timer or a
 * connection keeps the context in which it was made, with all `AsyncLocalStorage` stores of that
 * caller, such as its request, for as long as it lives: that is the client's life.
 */
export function detached<T>(work: () => T): T {
  return resource.runInAsyncScope(work);
}
