import { performance } from "node:perf_hooks";
import { pauses } from "../../util/abort.ts";
import { clocks } from "../../util/clock.ts";
import { settled } from "./test-process.ts";

/** How far the clocks of this process were advanced, in ms, and whether they can be. */
let ahead = 0;
let isOwn = false;

/** What happens at times of the clock. */
export interface Timed {
  /** When it happens next, on the monotonic clock. */
  readonly next: number;
  /** Lets happen what is due. */
  look(): void;
}

/**
 * When the process began. Fake timers of a test runner may replace the global `performance`, and
 * with it this time.
 */
const { timeOrigin } = performance;

/**
 * Replaces the clocks of this process by one that can be advanced, and that no fake `Date` affects.
 */
export function ownClocks(): void {
  if (isOwn) return;
  isOwn = true;
  const { mono } = clocks;
  clocks.mono = { now: () => mono.now() + ahead };
  clocks.wall = { now: () => timeOrigin + clocks.mono.now() };
}

/**
 * Advances the clocks by `ms`, from timer to timer: what is due on the way happens at its time, so
 * a renewed lease stays renewed. Resolves when all consequences have happened. The clocks stand
 * still while a reply is under way, so no command looks unanswered.
 */
export async function advance(ms: number, timedOf: () => readonly Timed[]): Promise<void> {
  await settled();
  for (let left = ms; left > 0; ) {
    const next = Math.min(...timedOf().map((one) => one.next), ...pauses.values());
    const step = Math.min(left, Math.max(next - clocks.mono.now(), 0) + GRAIN);
    ahead += step;
    left -= step;
    for (const one of timedOf()) one.look();
    for (const [end, at] of pauses) if (at <= clocks.mono.now()) end();
    await settled();
  }
}

/** In ms: the smallest step, so that a timer which is set again for now does not stop the clock. */
const GRAIN = 0.01;
