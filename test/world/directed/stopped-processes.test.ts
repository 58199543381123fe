import { describe, expect, test } from "vitest";
import { scene } from "./scene.ts";
import { inTurn, L, outcomeOf, parked, R, warm } from "./steps.ts";

// Processes that stand still or block their event loop at a moment of a lock's life.

test(
  "a process blocks its event loop for 5 s, 200 ms into the body after a contended wait: it still holds the lock",
  scene(async (world) => {
    const [holder, one] = world.processes(2);
    const { held, waiting } = await parked(world, holder, [one]);
    await held.unlock();
    const lease = await waiting[0];
    // Granted by message it has the window of 3 s; the claim raises it to the whole lease.
    await world.pass(200);
    await one.does(() => one.block(5_000));
    await world.pass(6_000);
    expect([lease.held, lease.lease.signal.aborted]).toEqual([true, false]);
    expect(await holder.tryTake("lock")).toBeNull();
    await lease.unlock();
  }),
);

test(
  "a process is stopped for several leases, with the watchdog: it goes on as a former holder, and harms no caller",
  scene(async (world) => {
    const [holder, other] = world.processes(2);
    const { held, waiting } = await parked(world, holder, [other]);
    holder.pause(3 * L);
    const next = await waiting[0];
    await world.pass(3 * L);
    expect(await outcomeOf(held.unlock())).toEqual(["LOCK_LOST", "expired"]);
    expect([next.held, world.redis.holders("lock:a")]).toEqual([true, [other.number]]);
    await next.unlock();
    const again = await holder.take("lock");
    expect(again.token).toBeGreaterThan(next.token);
    await again.unlock();
  }),
);

describe("a process that blocks its event loop for longer than the time of a first command", () => {
  test(
    "reads the answers that came meanwhile before it gives up",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      await (await one.take("lock", { name: "b" })).unlock();
      await (await other.take("lock", { name: "b" })).unlock();
      const taking = one.does(() => {
        const tried = [one.client.lock("x").tryLock(), one.client.multiLock(["y", "z"]).tryLock()] as const;
        one.block(1_000);
        return Promise.all(tried);
      });
      const [lease, leases] = await taking;
      expect([lease?.held, leases?.held]).toEqual([true, true]);
      const refused = other.does(() => {
        const tried = other.client.lock("x").tryLock();
        other.block(1_000);
        return tried;
      });
      expect(await refused).toBeNull();
      await Promise.all([lease?.unlock(), leases?.unlock()]);
    }),
  );

  test(
    "has sent the release just before it blocks: another process has the lock meanwhile",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const { held, waiting } = await parked(world, one, [other], { lease: 60_000 });
      const unlocking = one.does(() => {
        const unlocked = held.unlock();
        one.block(2_000);
        return unlocked;
      });
      const next = await waiting[0];
      await world.pass(500);
      // Its own lease has run for a while.
      expect(world.redis.left("lock:a")).toBeGreaterThan(10_000);
      await unlocking;
      await next.unlock();
    }),
  );
});

test(
  "a waiter is stopped for longer than its place lasts: it queues again when it goes on",
  scene(async (world) => {
    const [holder, one, other] = world.processes(3);
    const { held, waiting } = await parked(world, holder, [one]);
    one.pause(15_000);
    await world.pass(10_000);
    // A client that comes finds that the entry is over.
    const next = other.take("lock");
    await world.pass(1);
    await held.unlock();
    await inTurn(world, next);
    await world.pass(6_000);
    const lease = await waiting[0];
    expect(lease.held).toBe(true);
    await lease.unlock();
  }),
);

test(
  "a waiter is stopped when it is granted the lock, and goes on after the window: it does not enter beside the next one",
  scene(async (world) => {
    const [holder, one, other] = world.processes(3);
    const { held, waiting } = await parked(world, holder, [one, other]);
    one.pause(6_000);
    await held.unlock();
    const next = await waiting[1];
    await world.pass(3_000);
    expect([next.held, world.redis.queue("lock:a")]).toEqual([true, [one.number]]);
    await next.unlock();
    await inTurn(world, waiting[0]);
  }),
);

test(
  "a process is stopped between assertHeld() and its write: the token of the next holder is larger",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const { held, waiting } = await parked(world, one, [other]);
    const writing = one.does(async () => {
      held.lease.assertHeld();
      one.block(2 * L);
      return held.token;
    });
    const { result: next, took } = await world.timed(waiting[0]);
    expect(took).toBeLessThanOrEqual(L + R);
    expect(await writing).toBeLessThan(next.token);
    await next.unlock();
    await held.unlock().catch(() => {});
    await warm(world, one, other);
  }),
);
