import type { HolderFlag, RenewAnswer } from "../../redis/replies.ts";

/**
 * Raises the TTL of holds of one lock kind: several in one call, with an answer for each, in order.
 */
export interface Renewer {
  /**
   * How many in one call. In Cluster one: each lock has its own slot, and during a migration a
   * single key can still be found.
   */
  readonly batch: number;
  /** The longest lease, in ms; left out: as long as a timer can wait. */
  readonly longestLease?: number;
  /** `ttl` in ms, counted from now; never shortens. Rejects when there was no answer within `timeout` ms. */
  renew(holds: readonly Renewal[], timeout: number): Promise<readonly RenewAnswer[]>;
}

/** A hold to renew. `flag`: the digit to set in the lock; null: unchanged. */
export interface Renewal {
  readonly hold: Named;
  readonly ttl: number;
  readonly flag: HolderFlag | null;
}

/** A hold, as Redis names it. */
export interface Named {
  readonly name: string;
  readonly id: string;
  readonly label: string;
}
