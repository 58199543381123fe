/**
 * One moment on both clocks of this process. The monotonic clock measures, and no correction of the system's time
 * bends it; but it stands still while the machine is suspended, where the wall clock goes on.
 */
export interface Instant {
  readonly mono: number;
  readonly wall: number;
}

/** Taken before a command is sent: what Redis does happens later, so a deadline counted from here is never too late. */
export function now(): Instant {
  return { mono: performance.now(), wall: Date.now() };
}
