import { LockError, quote } from "./errors.ts";

/**
 * A semaphore has another number of permits than the caller's code says (`PERMITS_DIFFER`), or fewer than the caller wants; or
 * nobody has said a number (`PERMITS_UNKNOWN`). The caller has nothing, and does not stand in the queue.
 */
export class PermitsError extends LockError {
  override readonly name = "PermitsError";

  constructor(
    lockName: string,
    /** How many permits there are. Null: nobody has said a number. */
    readonly stored: number | null,
    /** How many there are by the caller's code. Null: it says none. */
    readonly given: number | null,
    /** How many the caller wants. */
    readonly units: number,
  ) {
    const mine = given === null ? "" : ` of ${given}`;
    const why =
      stored === null
        ? "no number of permits yet: give locks.semaphore() its { permits }, or call setPermits() once."
        : `${stored} permit${stored === 1 ? "" : "s"}, and this caller wants ${units}${mine}: ` +
          "give the same number in all code, or call setPermits(), whose number counts for all callers.";
    super(
      stored === null ? "PERMITS_UNKNOWN" : "PERMITS_DIFFER",
      lockName,
      `Semaphore ${quote(lockName)} has ${why}`,
    );
  }
}
