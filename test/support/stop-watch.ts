import type { Lease } from "../../src/index.ts";

export interface StopReport {
  /** `lease.held` as the first statement that ran after the stop. */
  heldAfterStop: boolean;
  /** Had `lease.signal` aborted within 100 ms of it? */
  abortedSoon: boolean;
}

const TICK = 1;
const STOPPED = 500;
const SOON = 100;

/**
 * Detects that this process was stopped (SIGSTOP, a suspend, a blocked loop) and records the
 * lease's state then.
 */
export class StopWatch {
  #report: StopReport | null = null;

  constructor(lease: Lease) {
    const { signal } = lease; // made on first use: it must exist before the stop
    let last = performance.now();
    const timer = setInterval(() => {
      const gap = performance.now() - last;
      last += gap;
      if (gap < STOPPED) return;
      const heldAfterStop = lease.held;
      clearInterval(timer);
      setTimeout(() => {
        this.#report = { heldAfterStop, abortedSoon: signal.aborted };
      }, SOON);
    }, TICK);
  }

  /** `null` until a stop is over and judged. */
  get report(): StopReport | null {
    return this.#report;
  }
}
