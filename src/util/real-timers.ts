import * as timers from "node:timers";

/**
 * The timers of Node.js. A test of an application may replace or remove the global ones; its locks
 * continue in real time.
 */
export const { clearImmediate, clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } = timers;
/** They may be replaced too: fake timers of Jest take over all of these. */
export const { queueMicrotask } = globalThis;
export const nextTick = process.nextTick.bind(process);

/** The same for p-timeout. */
export const customTimers = { clearTimeout, setTimeout };

/** The same, but they keep no process alive. */
export const idleTimers = {
  clearTimeout,
  setTimeout: ((ring: () => void, ms: number) => setTimeout(ring, ms).unref()) as typeof setTimeout,
};
