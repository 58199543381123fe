const TICK = 5;
/** The most that one tick may count, in ms. */
const MOST = 20;

let last = performance.now();
let total = 0;
setInterval(() => {
  const now = performance.now();
  total += Math.min(now - last, MOST);
  last = now;
}, TICK).unref();

/**
 * For how many ms this process has been awake. While it stands still no time passes here, or next
 * to none: what must be over soon can be told from what takes a second on a busy machine too.
 *
 * @example
 * const asked = awake();
 * await waiter; // by message; the next look would come after 1.1 s at the earliest
 * expect(awake() - asked).toBeLessThan(1_000);
 */
export const awake = (): number => total;
