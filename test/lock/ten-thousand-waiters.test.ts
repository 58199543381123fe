import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { Stage, timed } from "../support/stage.ts";

// Ten thousand callers of one client wait for one lock, and every second one gives up.

const CROWD = 10_000;
/** ms that a slow and busy machine may take for any of it. */
const LONG = 90_000;
// On a busy machine the last of so many first commands is answered after more than the 5 s of a
// client's replyTimeout.
const stage = new Stage({ near: { client: { replyTimeout: 60_000 } } });
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const heap = (): number => {
  collect();
  return process.memoryUsage().heapUsed;
};

describe.each(["lock", "fairLock"] as const)("10 000 waiters, and half of them abort: %s", (kind) => {
  /** All of them come, half of them go, the others have their turns. Answers what it took. */
  async function crowd() {
    const { near, far, lock } = stage;
    const places = kind === "lock" ? 1 : CROWD;
    const held = await far.locks[kind](lock.name).lock();
    const before = heap();
    const enough = new AbortController();
    const order: number[] = [];
    const call = async (n: number): Promise<string> => {
      try {
        const lease = await near.locks[kind](lock.name).lock(n % 2 === 1 ? { signal: enough.signal } : {});
        order.push(n);
        await lease.unlock();
        return "had it";
      } catch (error) {
        return error === enough.signal.reason ? "gave up" : String(error);
      }
    };
    const calls = Array.from({ length: CROWD }, (_, n) => call(n));
    const [, parking] = await timed(lock.queued(places, LONG));
    const bytes = Math.round((heap() - before) / CROWD);
    enough.abort(new Error("enough"));
    const [, aborting] = await timed(Promise.all(calls.filter((_, n) => n % 2 === 1)));
    const [, leaving] = await timed(lock.queued(Math.max(1, places / 2), LONG));
    await held.unlock();
    const [outcomes, serving] = await timed(Promise.all(calls));
    expect(outcomes).toEqual(outcomes.map((_, n) => (n % 2 === 1 ? "gave up" : "had it")));
    expect(order).toEqual(Array.from({ length: CROWD / 2 }, (_, n) => 2 * n));
    await lock.gone();
    return { parking, bytes, aborting, leaving, serving };
  }

  it(
    "the others get their turns in order, and nothing is left behind",
    async ({ annotate }) => {
      const before = heap();
      const { parking, bytes, aborting, leaving, serving } = await crowd();
      const left = Math.round((heap() - before) / CROWD);
      await annotate(
        `${parking} ms until all wait, ${bytes} bytes each, ${left} afterwards; aborts told in ${aborting} ms, places gone ${leaving} ms later; 5 000 turns in ${serving} ms`,
      );
      expect(bytes).toBeLessThan(10_000);
      expect(left).toBeLessThan(bytes / 4);
    },
    2 * LONG,
  );
});
