import { describe, expect, it } from "vitest";
import { HOUR, stageWithClock } from "../support/clock-stage.ts";
import { timed } from "../support/stage.ts";

// Somebody sets the server's clock. Redis ends keys by it, and tokens follow it. Clients have their
// own clocks.

const LEASE = 1_500;
const { stage, clock } = stageWithClock({ near: { client: { leaseTime: LEASE } } });

describe("the server's clock jumps an hour forward", () => {
  it("every key ends at once: a waiter has the lock at its re-check, the holder is notified at its renewal", async ({
    annotate,
  }) => {
    const { near, far, lock } = stage;
    const lease = await near.locks.lock(lock.name).lock();
    const told = new Promise<void>((resolve) => lease.signal.addEventListener("abort", () => resolve()));
    const waiting = far.locks.lock(lock.name).lock();
    await lock.queued(1);
    clock.jump(HOUR);
    const [[, knew], [next, waited]] = await Promise.all([timed(told), timed(waiting)]);
    await annotate(`the waiter has it after ${waited} ms, the holder knows after ${knew} ms`);
    expect(["gone", "taken"]).toContain(lease.signal.reason.reason);
    expect(knew).toBeLessThan(LEASE);
    expect(waited).toBeLessThan(3 * 1_925);
    // the resource that checks tokens is safe
    expect([next.held, next.token > lease.token]).toEqual([true, true]);
    await next.unlock();
    await lock.gone();
  });
});
