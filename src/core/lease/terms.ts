import type { Kept } from "../../redis/replies.ts";

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
  /** For a result that callers share. Left out: it is a lock. */
  readonly result?: WantedResult;
}

/** A caller that runs a body, or gets the result of another run. */
export interface WantedResult {
  /** The token of the first run that it has waited for: that run's result is for it. 0: none. */
  seen: number;
  /** What its call resolves with for a result that is there. @throws what it rejects with */
  found(kept: Kept): unknown;
}

/**
 * `units`: permits of a semaphore; `of`: how many there are by the caller's code, null: as many as
 * are stored.
 */
export interface WantedPermits {
  readonly units: number;
  readonly of: number | null;
}
