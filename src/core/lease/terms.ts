// A call's requests, after its arguments are checked.

/** A caller's requirements for a lease, checked and with defaults filled in. */
export interface Terms {
  /** ms. */
  readonly lease: number;
  /** Renew it while it is held. False: it always ends after `lease` ms. */
  readonly watchdog: boolean;
  /** The watchdog stops after this many ms. */
  readonly maxHold: number;
  /**
   * How many ms it may stay with its process after its last user has left. 0: it is released at
   * once.
   */
  readonly linger: number;
  /** What the call is for, encoded, after a space. Left out: unknown. */
  readonly label?: string;
  /** For a semaphore. Left out: it is a lock. */
  readonly permits?: WantedPermits;
}

/**
 * `units`: permits of a semaphore; `of`: how many there are by the caller's code, null: as many as
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
  /** The lease that was asked for as a number; null: none. A re-entry extends to it. */
  readonly explicit: number | null;
  /** How many local hand-offs may come before this call gets it. Left out: its kind's number. */
  readonly passes?: number | undefined;
  /**
   * May it enter its scope's holds, and may calls of its scope enter its hold? By its own option,
   * or its lock's or client's.
   */
  readonly reentrant: boolean;
  /** Its own option. Left out: not given. */
  readonly says?: boolean | undefined;
}
