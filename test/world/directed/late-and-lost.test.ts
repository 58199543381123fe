import { describe, expect, test } from "vitest";
import { scene } from "./scene.ts";
import { BY_MESSAGE, L, outcomeOf, parked, R } from "./steps.ts";

// What a cheaper exchange with Redis would break: commands that run long after they were sent, or
// whose process is gone.

const NAMES = Array.from({ length: 100 }, (_, i) => `${i}`);

test(
  "the server is suspended, and clients that asked for 100 locks die: no lock is held when it goes on",
  scene(async (world) => {
    const [asking, other] = world.processes(2);
    await (await asking.take("lock")).unlock(); // it knows the server's time
    world.redis.pause(10_000);
    for (const name of NAMES) void asking.take("lock", { name });
    await world.pass(1);
    asking.crash();
    await world.pass(10_000);
    await (await other.take("lock")).unlock();
    expect(NAMES.filter((name) => world.redis.holders(`lock:${name}`).length > 0)).toEqual([]);
  }),
);

test(
  "an acquire is sent again after a failover that lost a later holder: its token is above that holder's",
  scene(async (world) => {
    const [early, late] = world.processes(2);
    await (await early.take("lock")).unlock();
    const stuck = early.on("acquire").sent(() => early.commands.cut({ back: 500 }));
    const taking = early.take("lock");
    await stuck;
    await world.pass(100);
    const later = await late.take("lock");
    world.redis.dropAll(); // the replica had neither that lock nor its token
    world.shows(/two holders of lock:a/);
    const lease = await taking;
    expect(lease.token).toBeGreaterThan(later.token);
    expect((await outcomeOf(later.unlock()))?.[0]).toBe("LOCK_LOST");
    await lease.unlock();
  }),
);

describe.each(["lock", "fairLock", "write", "semaphore"] as const)("%s", (kind) => {
  test(
    "a process is killed right after it has written its release: the waiter has it by one message",
    scene(async (world) => {
      const [holder, waiter] = world.processes(2);
      const { held, waiting } = await parked(world, holder, [waiter], { kind });
      const killed = holder.on("release").sent(() => holder.crash());
      void held.unlock();
      const { result: next, took } = await world.timed(waiting[0]);
      await killed;
      expect(took).toBeLessThan(BY_MESSAGE);
      await next.unlock();
    }),
  );

  test(
    "its holder crashes, and a caller tries every ms: when the lock ends, the waiter is next",
    scene(async (world) => {
      const [holder, waiter, trying] = world.processes(3);
      const { waiting } = await parked(world, holder, [waiter], { kind });
      holder.crash();
      let isInside = false;
      const entering = world.timed(waiting[0]).finally(() => {
        isInside = true;
      });
      while (!isInside) {
        expect(await trying.tryTake(kind, { units: kind === "semaphore" ? 3 : 1 })).toBeNull();
        await world.pass(1);
      }
      const { result: next, took } = await entering;
      expect(took).toBeLessThanOrEqual(1.5 * L + R);
      await next.unlock();
    }),
  );
});
