import { performance } from "node:perf_hooks";

/**
 * One moment on both clocks of this process. The monotonic clock measures, and no correction of the
 * system's time bends it; but it stands still while the machine is suspended, where the wall clock
 * goes on.
 */
export interface Instant {
  readonly mono: number;
  readonly wall: number;
}

/** Before all others. */
export const NEVER: Instant = { mono: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY };

/** A clock, in ms. */
interface Ticker {
  now(): number;
}

/**
 * The clocks of this process, as everything here reads them: by way of this object a test can put
 * them on, for all lock clients of its process. What is put on never goes back, so a lease only
 * ends earlier than it would.
 */
export const clocks: { mono: Ticker; wall: Ticker } = { mono: performance, wall: Date };

/**
 * Taken before a command is sent: what Redis does happens later, so a deadline counted from here is
 * never too late.
 */
export function now(): Instant {
  return { mono: clocks.mono.now(), wall: clocks.wall.now() };
}
