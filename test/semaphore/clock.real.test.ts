// On a real Redis; in virtual time: test/world/directed/semaphore.test.ts.

import { expect, it } from "vitest";
import type { PermitLease, Semaphore } from "../../src/index.ts";
import { HOUR, stageWithClock } from "../support/clock-stage.ts";
import { turnOf } from "../support/turn.ts";
import { until } from "../support/until.ts";

// The server's clock is stepped. Ends of permits are times of it, and so are the numbers of turns.
// Clients have their own clocks.

const LEASE = 3_000;
const { stage, clock } = stageWithClock({ near: { client: { leaseTime: LEASE } } });

/** One of two permits held by `near`, the other one too, and a caller of `far` that waits. */
async function scene() {
  const [mine, theirs] = [stage.near, stage.far].map(({ locks }) =>
    locks.semaphore(stage.lock.name, { permits: 2 }),
  ) as [Semaphore, Semaphore];
  const held = [await mine.acquire(), await mine.acquire()] as [PermitLease, PermitLease];
  const next = theirs.acquire();
  await until(async () => (await theirs.inspect()).waiters.length === 1);
  return { mine, theirs, held, next };
}

it("after an hour back, permits are held, renewed and released as before, with larger numbers", async () => {
  const { theirs, held, next } = await scene();
  const renewed = new Promise<void>((resolve) => void stage.near.locks.once("renew", () => resolve()));
  clock.jump(-HOUR);
  await renewed;
  expect(held.map((one) => one.held)).toEqual([true, true]);
  const since = performance.now();
  await held[0].release();
  const lease = await next;
  expect(performance.now() - since).toBeLessThan(LEASE); // by its message
  expect(turnOf(lease)).toBeGreaterThan(turnOf(held[1]));
  expect((await theirs.inspect()).used).toBe(2);
  await lease.release();
  await held[1].release();
  expect((await theirs.inspect()).used).toBe(0);
});

it("after an hour back, the permits of a crashed holder are taken for that hour, or until a force-release", async () => {
  const { theirs, held, next } = await scene();
  stage.near.locks.on("error", () => {}); // of renewals
  stage.proxy.refuse(true);
  stage.proxy.cut();
  clock.jump(-HOUR);
  await until(() => held.every((one) => !one.held));
  const { holders } = await theirs.inspect();
  expect(holders.map(({ remaining }) => remaining > HOUR - 60_000)).toEqual([true, true]);
  expect(await theirs.forceUnlock()).toBe(2);
  const lease = await next;
  expect((await theirs.inspect()).used).toBe(1);
  await lease.release();
});

it("after an hour forward, every hold is over, the waiter gets its permit at a re-check, and the holders are notified", async () => {
  const { theirs, held, next } = await scene();
  clock.jump(HOUR);
  await until(() => held.every(({ signal }) => signal.aborted));
  expect(held[0].signal.reason).toMatchObject({ reason: "gone" });
  const lease = await next;
  expect([turnOf(lease) > turnOf(held[1]), (await theirs.inspect()).used]).toEqual([true, 1]);
  await lease.release();
});
