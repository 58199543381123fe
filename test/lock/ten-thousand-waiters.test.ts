import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it, onTestFinished } from "vitest";
import type { Lock } from "../../src/index.ts";
import { createTestLocks } from "../../src/tools/testing/index.ts";
import { until } from "../support/until.ts";

// Ten thousand callers of one client wait for one lock, and every second one gives up: what they take
// of the heap, with the queue of the Redis in memory, and that they leave nothing there. How soon aborts
// are reported, and that nothing is left in Redis, is in test/world/directed/crowds.test.ts.

const CROWD = 10_000;
/** ms that a slow and busy machine may take for any of it. */
const LONG = 90_000;
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const heap = (): number => {
  collect();
  return process.memoryUsage().heapUsed;
};

/** All of them come, half of them go, the others have their turns. Returns bytes for each waiter. */
async function play(other: Lock, lock: Lock): Promise<number> {
  const waiting = (callers: number): Promise<unknown> =>
    until(async () => (await lock.inspect()).here.waiting === callers, { timeout: LONG });
  const held = await other.lock();
  const before = heap();
  const enough = new AbortController();
  const order: number[] = [];
  const call = async (n: number): Promise<string> => {
    try {
      const lease = await lock.lock(n % 2 === 1 ? { signal: enough.signal } : {});
      order.push(n);
      await lease.unlock();
      return "had it";
    } catch (error) {
      return error === enough.signal.reason ? "gave up" : String(error);
    }
  };
  const calls = Array.from({ length: CROWD }, (_, n) => call(n));
  await waiting(CROWD);
  const bytes = (heap() - before) / CROWD;
  enough.abort(new Error("enough"));
  await Promise.all(calls.filter((_, n) => n % 2 === 1));
  await waiting(CROWD / 2);
  await held.unlock();
  const outcomes = await Promise.all(calls);
  expect(outcomes).toEqual(outcomes.map((_, n) => (n % 2 === 1 ? "gave up" : "had it")));
  expect(order).toEqual(Array.from({ length: CROWD / 2 }, (_, n) => 2 * n));
  return bytes;
}

it.for(["lock", "fairLock"] as const)(
  "10 000 waiters, and half of them abort: the others get their turns in order, and no memory stays in use: %s",
  { timeout: 3 * LONG },
  async (kind, { annotate }) => {
    // On a busy machine so many first commands take more than the 5 s of a client's replyTimeout.
    const holder = createTestLocks({ replyTimeout: LONG });
    const crowd = holder.test.another();
    onTestFinished(async () => void (await Promise.all([crowd.close(), holder.close()])));
    const [other, lock] = [holder[kind]("x"), crowd[kind]("x")];
    // Compiled code and the room of lists stay in use.
    await play(other, lock);
    const before = heap();
    const bytes = await play(other, lock);
    const left = (heap() - before) / CROWD;
    await annotate(`${Math.round(bytes)} bytes each, ${Math.round(left)} afterwards`);
    expect(bytes).toBeLessThan(5_000);
    expect(left).toBeLessThan(bytes / 4);
  },
);
