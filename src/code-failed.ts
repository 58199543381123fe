import { causeOf, LockError, quote, sentence } from "./errors.ts";
import { show } from "./validate.ts";

// What code of the application has thrown that no caller is told of: `error` events, with what was thrown as their cause.

/** A listener for an event of a client. `name`: of the lock; null: the event is about none. */
export function listenerFailed(event: string, name: string | null, thrown: unknown): LockError {
  const about = name === null ? "" : ` of ${quote(name)}`;
  const text = `A listener for the event '${event}'${about} failed: ${causeOf(thrown) || show(thrown)}`;
  return new LockError("LISTENER_FAILED", name, sentence(text), thrown);
}

/** The body of a leader after the loss of its term: another term has begun, or will. */
export function bodyFailed(name: string, thrown: unknown): LockError {
  const text = `The body of runAsLeader for election ${quote(name)} failed after its term was lost: ${causeOf(thrown) || show(thrown)}`;
  return new LockError("BODY_FAILED", name, sentence(text), thrown);
}
