import type { Recorder } from "./history/recorder.ts";

const EVERY = 100;
/** ms; a smaller step does not matter. */
const STEP = 5;

/**
 * Notes when the machine's wall clock is stepped. Redis ends keys by it, so a step forward breaks a
 * promise that is made for clocks without steps.
 */
export function watchClock(recorder: Recorder): NodeJS.Timeout {
  let known = offset();
  const look = (): void => {
    const now = offset();
    if (Math.abs(now - known) > STEP) recorder.tell({ is: "clock step", ms: now - known });
    known = now;
  };
  return setInterval(look, EVERY).unref();
}

/** ms from the monotonic clock to the wall clock: of some readings the one that was disturbed least. */
function offset(): number {
  const readings = Array.from({ length: 5 }, () => {
    const before = performance.now();
    const wall = Date.now();
    const after = performance.now();
    return { took: after - before, offset: wall - (before + after) / 2 };
  });
  return readings.reduce((best, one) => (one.took < best.took ? one : best)).offset;
}
