import { Context } from "./context.ts";

const nowhere = Context.empty();

/**
 * Runs something outside of any caller's asynchronous context: code of the application that no
 * call waits for, such as a listener, and code that makes timers and connections which outlive the
 * call.
 *
 * A listener would run in the scope of the caller that happened to arm the client's one timer or to
 * send a command, and a lock taken there would be borrowed from another caller's body. A timer or a
 * connection keeps the context in which it was made, with all `AsyncLocalStorage` stores of that
 * caller, such as its request, for its own life, which is the client's.
 */
export function detached<T>(work: () => T): T {
  return nowhere.run(work);
}
