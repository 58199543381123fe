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
    const which = `Semaphore ${quote(lockName)}`;
    if (stored === null) {
      const cure = "give locks.semaphore() its { permits }, or call setPermits() once.";
      super("PERMITS_UNKNOWN", lockName, `${which} has no number of permits yet: ${cure}`);
      return;
    }
    const isFew = given === null || given === stored || units > stored;
    const mine = isFew ? `this caller wants ${units}` : `this caller's code says ${given}`;
    const cure = isFew ? "Ask for fewer" : "Let all callers say the same";
    super(
      "PERMITS_DIFFER",
      lockName,
      `${which} has ${stored} permits, and ${mine}. ${cure}, or call setPermits() with the number that counts for all.`,
    );
  }
}
