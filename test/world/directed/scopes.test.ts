import { describe, expect, test } from "vitest";
import { scene } from "./scene.ts";
import { inTurn, L, outcomeOf, parked, R } from "./steps.ts";

// docs/guarantees.md, "Scopes" and "Assumptions".

describe("a scope", () => {
  test(
    "taking its lock again enters it; it is released when the last of its callers has left",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      await one.scope(async () => {
        const [outer, inner] = [await one.take("lock"), await one.take("lock")];
        expect(inner.token).toBe(outer.token);
        const waiting = other.take("lock");
        await world.pass(100);
        await outer.unlock();
        await world.pass(100);
        expect([inner.held, world.redis.holders("lock:a")]).toEqual([true, [one.number]]);
        await inner.unlock();
        await inTurn(world, waiting);
      });
    }),
  );

  test(
    "the end of locks.scope() takes the leases that are left in it; the end of a body takes none",
    scene(async (world) => {
      const [one] = world.processes(1);
      const left = await one.scope(() => one.take("lock"));
      expect([left.held, left.lease.signal.reason]).toMatchObject([false, { reason: "scope" }]);
      await outcomeOf(left.unlock());
      const kept = await one.client.lock("guard").withLock(() => one.take("lock", { name: "b" }));
      await world.pass(100);
      expect(kept.held).toBe(true);
      await kept.unlock();
    }),
  );

  test(
    "its lock is lost: `signal`, `held`, the first `unlock()` and `lost` report the same reason",
    scene(async (world) => {
      const [one] = world.processes(1);
      const lost = one.heard("lost");
      await one.scope(async () => {
        const leases = [await one.take("lock"), await one.take("lock")];
        world.redis.drop("lock:a");
        await world.pass(L / 3);
        for (const { held, lease } of leases)
          expect([held, lease.signal.reason]).toMatchObject([false, { reason: "gone" }]);
        const outcomes = [];
        for (const lease of leases.toReversed()) outcomes.push(await outcomeOf(lease.unlock()));
        expect(outcomes).toEqual([["LOCK_LOST", "gone"], null]);
      });
      expect(lost.map(({ error }) => error.reason)).toEqual(["gone"]);
    }),
  );

  test(
    "withLock() rejects with the loss that its lease reports",
    scene(async (world) => {
      const [one] = world.processes(1);
      let reason: unknown;
      const body = one.client.lock("lock:a").withLock(async ({ signal }) => {
        world.redis.drop("lock:a");
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        ({ reason } = signal);
      });
      const error: unknown = await body.catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "LOCK_LOST", reason: "gone" });
      expect(error).toBe(reason);
    }),
  );
});

describe("clocks", () => {
  test.each([0.991, 1.009])(
    "the holder's run at %s times the server's, and it is cut off: its lease is over before the waiter is inside",
    (clockRate) =>
      scene(async (world) => {
        const [holder] = world.processes(1, { clockRate });
        const [other] = world.processes(1);
        const { held, waiting } = await parked(world, holder, [other]);
        holder.cutOff(2 * L);
        const rest = world.redis.left("lock:a");
        const { result: next, took } = await world.timed(waiting[0]);
        expect(held.held).toBe(false);
        expect(took).toBeLessThanOrEqual(rest + R);
        await next.unlock();
        await held.unlock().catch(() => {});
      })(),
  );
});
