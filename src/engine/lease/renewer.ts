import type { HolderFlag, RenewAnswer } from "../../redis/replies.ts";

/** Raises the TTL of holds of one lock kind: several in one call, an answer for each, in order. */
export interface Renewer {
  /**
   * How many in one call. In Cluster one: locks have slots of their own, and a key by itself is
   * there in a migration too.
   */
  readonly batch: number;
  /** The longest lease, in ms; left out: whatever a timer can wait. */
  readonly longestLease?: number;
  /** `ttl` in ms, counted from now; never shortens. Rejects when there was no answer within `timeout` ms. */
  renew(holds: readonly Renewal[], timeout: number): Promise<RenewAnswer[]>;
}

/**
 * A hold to be renewed. `label`: as the hold has it. `record`: what its kind keeps about it.
 * `told`: the digit that the lock gets; null: as it is.
 */
export interface Renewal {
  readonly name: string;
  readonly id: string;
  readonly label: string;
  readonly ttl: number;
  readonly record: object | null;
  readonly flag: HolderFlag | null;
}
