import {
  ClientClosedError,
  LockError,
  type LockErrorCode,
  LockFormatError,
  LockUnavailableError,
  NotReplicatedError,
} from "./errors.ts";

/**
 * Why a call ended without the lock: "busy": it did not wait, and another caller held it.
 * "timeout": the same for all of its `wait`. "aborted": its `signal`. "closed": the client.
 * "unavailable": Redis gave no usable answer. "unreplicated": too few replicas had it. "refused":
 * no wait would have helped; the error says why. "reentered": its scope got the lock by another
 * call, and this one has entered that. "served": another caller of `remember` has run, and this one
 * has its result.
 */
export type GiveUpReason =
  | "busy"
  | "timeout"
  | "aborted"
  | "closed"
  | "unavailable"
  | "unreplicated"
  | "refused"
  | "reentered"
  | "served";

const REFUSALS: ReadonlySet<LockErrorCode> = new Set([
  "DEADLOCK",
  "FINGERPRINT_DIFFERS",
  "PERMITS_DIFFER",
  "PERMITS_UNKNOWN",
  "RESULT_NOT_STORABLE",
  "TOO_MANY_HOLDS",
]);

/**
 * Why a call leaves the line of a lock: its scope got the lock by another call, which it now
 * enters. This error never leaves the package.
 */
export const OVERTAKEN = new Error("another call of the same scope got the lock");

/** Why a call of `remember` leaves: there is a result. This error never leaves the package. */
export const SERVED = new Error("a result is there");

/** Any error that is not ours is the reason of the caller's signal. */
export function reasonOf(error: unknown): GiveUpReason {
  if (error === OVERTAKEN) return "reentered";
  if (error === SERVED) return "served";
  if (error instanceof LockUnavailableError || error instanceof LockFormatError) return "unavailable";
  if (error instanceof ClientClosedError) return "closed";
  if (error instanceof NotReplicatedError) return "unreplicated";
  return error instanceof LockError && REFUSALS.has(error.code) ? "refused" : "aborted";
}
