import { performance } from "node:perf_hooks";

/**
 * One moment on both clocks of this process. The monotonic clock measures, unaffected by
 * corrections of the system's time; but it stops while the machine is suspended, and the wall clock
 * does not.
 */
export interface Instant {
  readonly mono: number;
  readonly wall: number;
}

/** Before any other moment. */
export const NEVER: Instant = { mono: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY };

/** A clock, in ms. */
interface Ticker {
  now(): number;
}

/**
 * The clocks of this process, for all code here: through this object a test can advance them, for
 * all lock clients of its process. They never go back, so a lease can only end earlier than without
 * that.
 */
export const clocks: { mono: Ticker; wall: Ticker } = { mono: performance, wall: Date };

/**
 * Read before a command is sent. Redis runs the command later, so a deadline counted from here is
 * never too late.
 */
export function now(): Instant {
  return { mono: clocks.mono.now(), wall: clocks.wall.now() };
}
