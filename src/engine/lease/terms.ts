// What a call asks for, when its arguments are checked.

/** What a caller wants of a lease, checked and with defaults filled in. */
export interface Terms {
  /** ms. */
  readonly lease: number;
  /** Renew it while it is held. False: it ends after `lease` ms, come what may. */
  readonly watchdog: boolean;
  /** The watchdog stops after this many ms. */
  readonly maxHold: number;
  /** For so many ms it may stay with its process when its last user has left. 0: it goes at once. */
  readonly linger: number;
  /** What the call is for, encoded, behind a space. Left out: it does not say. */
  readonly label?: string;
  /** Of a semaphore. Left out: it is a lock. */
  readonly permits?: WantedPermits;
}

/**
 * So many permits of a semaphore; `of`: how many there are by the caller's code, null: as many as
 * are stored.
 */
export interface WantedPermits {
  readonly units: number;
  readonly of: number | null;
}

/** A call's options, checked and complete. */
export interface Request {
  readonly terms: Terms;
  readonly wait: number;
  readonly signal: AbortSignal | undefined;
  /** The lease that was asked for by number; null: none. A re-entry extends to it. */
  readonly explicit: number | null;
  /**
   * How often the lock may have been passed on in this process before this call gets it. Left out:
   * as its kind has it.
   */
  readonly passes?: number | undefined;
  /**
   * May it enter what its scope holds, and calls of its scope what it gets? As it says itself, or
   * as its lock or its client says.
   */
  readonly reentrant: boolean;
  /** What it says of that itself. Left out: nothing. */
  readonly says?: boolean | undefined;
}
