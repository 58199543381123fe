import * as timers from "node:timers";

/**
 * The timers of Node.js. A test of an application may replace the global ones, or have none of
 * some; its locks go on all the same, in their own time.
 */
export const { clearImmediate, clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } = timers;

/** The same for p-timeout. */
export const customTimers = { clearTimeout, setTimeout };

/** The same where nobody need wait for the end: they keep no process alive. */
export const idleTimers = {
  clearTimeout,
  setTimeout: ((ring: () => void, ms: number) => setTimeout(ring, ms).unref()) as typeof setTimeout,
};
