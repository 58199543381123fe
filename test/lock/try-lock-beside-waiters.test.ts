import { expect, it, onTestFinished, vi } from "vitest";
import { Line } from "../../src/core/line.ts";
import type { Waiter } from "../../src/core/waiter.ts";
import { createTestLocks } from "../../src/tools/testing/index.ts";
import { lockOf } from "../support/permit.ts";

// A process whose callers wait for a lock in their thousands goes on asking for it with tryLock().
// Its CPU time says little on a busy machine, so this counts the steps from one caller to another.

/** From one caller of a line to another. */
let steps = 0;

/** Counts each read of the link from one caller to another. */
function watch(caller: Waiter): void {
  for (const link of ["next", "previous"] as const) {
    let value = caller[link];
    Object.defineProperty(caller, link, {
      get() {
        steps++;
        return value;
      },
      set(to: Waiter | null) {
        value = to;
      },
    });
  }
}

/** How many steps `calls` times tryLock() of a held lock take beside so many parked callers. */
async function stepsBeside(
  kind: "lock" | "redissonLock" | "spinLock",
  parked: number,
  calls: number,
): Promise<number> {
  const holder = createTestLocks();
  const crowd = holder.test.another();
  onTestFinished(
    async () => void (await Promise.all([crowd.close({ grace: 0 }), holder.close({ grace: 0 })])),
  );
  const held = await lockOf(holder, kind, "x").lock();
  const enough = new AbortController();
  const lock = lockOf(crowd, kind, "x");
  const waiting = Array.from({ length: parked }, () => lock.lock({ signal: enough.signal }));
  const over = Promise.allSettled(waiting);
  for (let i = 0; i < 20; i++) expect(await lock.tryLock()).toBeNull();
  steps = 0;
  for (let i = 0; i < calls; i++) expect(await lock.tryLock()).toBeNull();
  const taken = steps;
  enough.abort();
  await over;
  await held.unlock();
  return taken;
}

it.each(["lock", "redissonLock", "spinLock"] as const)(
  "tryLock() examines no more callers beside a crowd than beside a few: %s",
  async (kind) => {
    const { add } = Line.prototype;
    vi.spyOn(Line.prototype, "add").mockImplementation(function (this: Line, caller) {
      add.call(this, caller);
      watch(caller);
    });
    onTestFinished(() => void vi.restoreAllMocks());
    const few = await stepsBeside(kind, 100, 50);
    const many = await stepsBeside(kind, 10_000, 50);
    expect(few).toBeGreaterThan(0);
    expect(many).toBeLessThan(2 * few);
  },
);
