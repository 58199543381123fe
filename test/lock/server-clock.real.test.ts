// On a real Redis; in virtual time: test/world/directed/{servers,redis-failures}.test.ts.

import { describe, expect, it } from "vitest";
import { HOUR, stageWithClock } from "../support/clock-stage.ts";
import { timed } from "../support/stage.ts";
import { until } from "../support/until.ts";

// Somebody sets the server's clock. Redis ends keys by it, and tokens follow it. Clients have their
// own clocks.

const LEASE = 1_500;
const { stage, clock } = stageWithClock({ near: { client: { leaseTime: LEASE } } });

/** Two clients take and give back the lock by turns; answers the tokens. */
async function visits(count: number): Promise<number[]> {
  const tokens: number[] = [];
  for (let n = 0; n < count; n++)
    await stage[n % 2 === 0 ? "near" : "far"].locks
      .lock(stage.lock.name)
      .withLock(({ token }) => void tokens.push(token));
  return tokens;
}
const sorted = (numbers: number[]): number[] => [...new Set(numbers)].sort((a, b) => a - b);

describe("the server's clock jumps an hour forward", () => {
  it("a lock granted before it and claimed after it is not given to two callers", async () => {
    const { near, far, lock, proxy } = stage;
    const held = await far.locks.lock(lock.name).lock();
    const waiting = near.locks.lock(lock.name).lock({ lease: 20_000 });
    await lock.queued(1);
    proxy.partition("commands"); // the grant arrives, the claim does not
    await held.unlock();
    clock.jump(HOUR);
    const next = await far.locks.lock(lock.name).lock();
    proxy.thaw(); // "taken": it queues again
    await lock.queued(1);
    expect(await lock.holder()).toContain(far.locks.id);
    await next.unlock();
    const lease = await waiting;
    expect([lease.held, lease.token > next.token]).toEqual([true, true]);
    await lease.unlock();
    await lock.gone();
  });

  it("commands sent before it are stale and sent again, unnoticed by the caller", async () => {
    const { near, lock, proxy } = stage;
    await visits(2); // the server's clock is known
    await near.locks.check(); // it has subscribed
    clock.jump(HOUR);
    proxy.record();
    const lease = await near.locks.lock(lock.name).lock();
    // Stale; that hold is left, because a first copy might have been in time; again.
    expect(proxy.commands.length).toBe(3);
    await lease.unlock();
    await lock.gone();
  });
});

describe("the server's clock jumps an hour back", () => {
  it("nothing is lost: the holder goes on, the waiter is granted the lock, tokens grow", async ({
    annotate,
  }) => {
    const { near, far, lock } = stage;
    const lease = await near.locks.lock(lock.name).lock();
    const waiting = far.locks.lock(lock.name).lock();
    await lock.queued(1);
    clock.jump(-HOUR);
    let renewals = 0;
    near.locks.on("renew", () => renewals++);
    await until(() => renewals >= 3, { what: "the watchdog to go on" });
    await lock.lookedAt();
    expect([lease.held, await lock.holder()]).toEqual([true, expect.stringContaining(near.locks.id)]);
    await lease.unlock();
    const [next, waited] = await timed(waiting);
    await annotate(`the waiter has it after ${waited} ms`);
    expect(waited).toBeLessThan(350);
    expect(next.token).toBeGreaterThan(lease.token);
    await next.unlock();
    await lock.gone();
  });

  it("a lease that ends by itself ends an hour later in Redis; its holder still ends in time, and informs Redis", async ({
    annotate,
  }) => {
    const { near, far, lock } = stage;
    const lease = await near.locks.lock(lock.name).lock({ lease: 1_000 });
    const waiting = far.locks.lock(lock.name).lock();
    await lock.queued(1);
    clock.jump(-HOUR);
    expect(await lock.left()).toBeGreaterThan(HOUR / 2);
    const [next, waited] = await timed(waiting);
    await annotate(`the waiter has it after ${waited} ms`);
    expect(lease.signal.reason).toMatchObject({ reason: "expired" });
    await next.unlock();
    await lock.gone();
  });

  it("a holder that crashed before it blocks the others for the hour, until a force-release", async () => {
    const { near, far, lock } = stage;
    const ghost = await stage.join({ client: { leaseTime: LEASE } });
    ghost.locks.on("error", () => {});
    await ghost.locks.lock(lock.name).lock();
    ghost.redis.disconnect(); // it cannot tell Redis any more
    const waiting = far.locks.lock(lock.name).lock();
    await lock.queued(1);
    clock.jump(-HOUR);
    await lock.lookedAt();
    expect(await lock.left()).toBeGreaterThan(HOUR / 2);
    expect(await near.locks.lock(lock.name).forceUnlock()).toBe(true);
    await (await waiting).unlock();
    await lock.gone();
  });
});

it("tokens grow over jumps in both directions", async () => {
  const tokens: number[] = [];
  for (const jump of [HOUR, -HOUR, -HOUR, HOUR, 0]) {
    tokens.push(...(await visits(4)));
    clock.jump(jump);
  }
  expect(tokens).toEqual(sorted(tokens));
  expect(tokens.length).toBe(20);
});
