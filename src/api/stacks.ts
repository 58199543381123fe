import { LockError, LockLostError } from "./errors.ts";

/**
 * Gives an error the stack of the call that rejects with it. Its own stack, from a timer or from
 * after an answer of Redis, would help no reader. An error that several calls reject with has the
 * first call's stack.
 */
export function thrownAt<E>(error: E, below: (...args: never[]) => unknown): E {
  if (!(error instanceof Error) || given.has(error)) return error;
  given.add(error);
  Error.captureStackTrace(error, below);
  return error;
}

const given = new WeakSet<Error>();

/**
 * A loss is thrown to a caller. The end of its block then does not throw it again: JavaScript would
 * wrap the error with which the block ended in a SuppressedError, or `finally` would replace it.
 */
export function tell<E>(error: E): E {
  if (error instanceof LockLostError) told.add(error);
  return error;
}

/** Was this loss thrown to a caller? */
export const isTold = (loss: LockLostError): boolean => told.has(loss);

const told = new WeakSet<LockLostError>();

/**
 * Makes `throwIfAborted()` of a lease's signal tell its loss. A signal that was only passed on tells
 * nothing: what it was passed to may have ended long before, so the body may not know.
 */
export function telling(signal: AbortSignal): AbortSignal {
  signal.throwIfAborted = throwIfAborted;
  return signal;
}

function throwIfAborted(this: AbortSignal): void {
  if (!this.aborted) return;
  const { reason } = this;
  throw reason instanceof LockLostError ? tell(thrownAt(reason, throwIfAborted)) : reason;
}

/**
 * May this error get the stack of the call that rejects with it? The reason of the call's own
 * signal stays as it is, even if it is an error of this package.
 */
export function isOurs(error: unknown, signal: AbortSignal | undefined): boolean {
  if (signal?.aborted && error === signal.reason) return false;
  // A deadlock's error gets its stack from the scoped call itself, which sees it later than this
  // code.
  return error instanceof LockError && !(error instanceof LockLostError) && error.code !== "DEADLOCK";
}

/**
 * A promise that rejects with this error, for the `resolve` of a promise that is awaited already. A
 * call costs nothing for it until it fails: V8 finds the callers through awaited promises, and only
 * for an error made in an async function.
 */
export async function failing(error: unknown): Promise<never> {
  // RACE: after the microtask that makes the caller's promise follow this one.
  await null;
  await null;
  throw thrownAt(error, failing);
}
