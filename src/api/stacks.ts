import { LockError, LockLostError } from "./errors.ts";

/**
 * Gives an error the stack of the call that it is thrown to: where it was made, in a timer or
 * behind an answer of Redis, nobody can find what is wrong. An error that several calls are told of
 * has the first one's.
 */
export function thrownAt<E>(error: E, below: (...args: never[]) => unknown): E {
  if (!(error instanceof Error) || given.has(error)) return error;
  given.add(error);
  Error.captureStackTrace(error, below);
  return error;
}

const given = new WeakSet<Error>();

/**
 * May this error get the stack of the call that it is thrown to? The reason of the call's own
 * signal is left as it is, also when it is an error of this package.
 */
export function isOurs(error: unknown, signal: AbortSignal | undefined): boolean {
  if (signal?.aborted && error === signal.reason) return false;
  // Where a deadlock ends, the scoped call itself gives it the stack: this is not the last to see it.
  return error instanceof LockError && !(error instanceof LockLostError) && error.code !== "DEADLOCK";
}

/**
 * A promise that rejects with this, for the `resolve` of a promise that is awaited already. A call
 * costs nothing for it until it fails: V8 finds the callers behind awaited promises, and only where
 * an error is made in an async function.
 */
export async function failing(error: unknown): Promise<never> {
  // RACE: behind the microtask that makes the caller's promise follow this one.
  await null;
  await null;
  throw thrownAt(error, failing);
}
