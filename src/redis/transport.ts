import type { Keys } from "../keys.ts";

/** What the lock manager needs to know of whatever carries the commands: one connection, or those to the nodes of a quorum. */
export interface Transport {
  /** How long a command may stay unanswered, in ms. */
  readonly replyTimeout: number;
  readonly keys: Keys;
  /** Grows whenever a connection is lost. The same number before and after a command: it was sent once. */
  readonly epoch: number;
  /**
   * When commands were last written that the application had held back, on the monotonic clock: by a blocked event loop right
   * behind a call. How long Redis takes to answer counts from then on. -Infinity: never.
   */
  readonly heldUntil: number;
  /** It was there and is lost, and may come back: commands would only pile up. */
  readonly isAway: boolean;
  /** It is closed for good. */
  readonly ended: boolean;
  /** May a command that was sent then, on the monotonic clock, have reached Redis? Not while there was no connection. */
  mayHaveReached(since: number): boolean;
  /** Why Redis does not answer, as far as that is known: where it should be, the connection's state and last error. */
  trouble(): Error;
  /** Called when the connection is there again after it was lost. */
  onReconnect: () => void;
  /** Called when the connection is closed for good. */
  onEnd: () => void;
  /** Takes the listeners off again. Commands that are on their way are still answered. */
  detach(): void;
}
