const TICK = 5;
/** The most that one tick counts, in ms. */
const MOST = 20;

let last = performance.now();
let total = 0;
setInterval(() => {
  const now = performance.now();
  total += Math.min(now - last, MOST);
  last = now;
}, TICK).unref();

/**
 * For how many ms this process has been running. While it is suspended no time passes here, or
 * almost none: so even on a busy machine a test can tell a prompt event from one that takes a
 * second.
 *
 * @example
 * const asked = awake();
 * await waiter; // by message; the next look would come after 1.1 s at the earliest
 * expect(awake() - asked).toBeLessThan(1_000);
 */
export const awake = (): number => total;
