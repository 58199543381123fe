import { describe, expect, test } from "vitest";
import type { Lease } from "../../../src/index.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { inTurn, L, outcomeOf, parked, R } from "./steps.ts";

// docs/guarantees.md, "Scopes" and "Assumptions".

const errorOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => null,
    (error: unknown) => error,
  );

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

describe("the end of a scope", () => {
  test(
    "is no second loss for a lease that was lost in it, and ends its share in the hold",
    scene(async (world) => {
      const [one] = world.processes(1);
      const [lost, errors] = [one.heard("lost"), one.heard("error")];
      const lock = one.client.lock("lock:a");
      await one.scope(async () => {
        const outer = await lock.lock({ lease: 1_000 });
        const inner = await one.client.scope(async () => {
          const own = await lock.lock();
          await world.pass(1_500);
          return own;
        });
        const loss = await errorOf(inner.unlock());
        expect([inner.signal.reason, inner.held]).toEqual([loss, false]);
        expect(loss).toMatchObject({ reason: "expired" });
        await outer.unlock(); // the same hold: its loss was thrown
        // With the last of its leases it is over, and the scope takes it anew.
        await (await lock.lock()).unlock();
        expect(lost.map(({ error }) => error)).toEqual([loss]);
      });
      expect(errors).toEqual([]);
    }),
  );

  test(
    "a scope whose lock was lost takes it anew when the loss was told, and not before",
    scene(async (world) => {
      const [one] = world.processes(1);
      const lock = one.client.lock("lock:a");
      await one.scope(async () => {
        const lease = await lock.lock({ lease: 1_000 });
        await world.pass(1_500);
        expect(await errorOf(lock.lock())).toMatchObject({ code: "LOCK_LOST" });
        await lease.unlock(); // its loss was thrown
        await (await lock.lock()).unlock();
      });
    }),
  );
});

test(
  "a lease that outlives its body has the terms of the call that acquired the lock, which an inner call can only lengthen",
  scene(async (world) => {
    const [one] = world.processes(1);
    const lock = (name: string) => one.client.lock(`lock:${name}`);
    const [short, long, bound] = await one.does(() =>
      Promise.all([
        lock("a").withLock({ lease: 1_000 }, (): Promise<Lease> => lock("a").lock()),
        lock("b").withLock({ lease: 1_000 }, (): Promise<Lease> => lock("b").lock({ lease: 20_000 })),
        lock("c").withLock({ maxHold: 1_000 }, (): Promise<Lease> => lock("c").lock()),
      ]),
    );
    await world.pass(1_500);
    expect([short.held, bound.held, long.remaining > 10_000]).toEqual([false, false, true]);
    expect(await errorOf(short.unlock())).toMatchObject({ reason: "expired" });
    expect(await errorOf(bound.unlock())).toMatchObject({ message: expect.stringContaining("maxHold") });
    await long.unlock();
  }),
);

describe("scopes that wait for each other", () => {
  /** Holds the first lock, and waits for the second one. What becomes of it. */
  const nest = (
    one: SceneProcess,
    world: Scene,
    [first, second]: readonly [string, string],
    signal?: AbortSignal,
  ): Promise<string> =>
    one.scope(async () => {
      const held = await one.take("lock", { name: first });
      await world.pass(100);
      const became = await one.take("lock", { name: second, ...(signal && { signal }) }).then(
        (lease) => lease.unlock().then(() => "both"),
        ({ code }: { code: string }) => code,
      );
      await held.unlock();
      return became;
    });
  const ENOUGH = Object.assign(new Error("enough"), { code: "given up" });

  test(
    "of two processes whose scopes wait for each other one is rejected within 15 s, and the other goes on",
    scene(async (world) => {
      const both = world.processes(2, { deadlocks: "reject" });
      const told = both.map((one) => one.heard("deadlock"));
      const { result, took } = await world.timed(
        Promise.all([nest(both[0], world, ["a", "b"]), nest(both[1], world, ["b", "a"])]),
      );
      expect(result.toSorted()).toEqual(["DEADLOCK", "both"]);
      expect(took).toBeGreaterThan(5_000);
      expect(took).toBeLessThan(15_000);
      expect(told.flat()).toMatchObject([{ rejected: true }]);
    }),
  );

  test(
    "of clients with `warn` and `reject` only a caller of the second one is rejected, even if it waited first",
    scene(async (world) => {
      const [warned] = world.processes(1, { deadlocks: "warn" });
      const [rejected] = world.processes(1, { deadlocks: "reject" });
      const told = [warned, rejected].map((one) => one.heard("deadlock"));
      const first = nest(rejected, world, ["a", "b"]);
      const other = warned.scope(async () => {
        const held = await warned.take("lock", { name: "b" });
        await world.pass(1_000);
        const lease = await warned.take("lock");
        await lease.unlock();
        await held.unlock();
        return "both";
      });
      expect(await Promise.all([first, other])).toEqual(["DEADLOCK", "both"]);
      expect(told).toMatchObject([[], [{ rejected: true }]]);
    }),
  );

  test(
    "one has a client with `off`: no client detects it",
    scene(async (world) => {
      const [off] = world.processes(1, { deadlocks: "off" });
      const [on] = world.processes(1, { deadlocks: "reject" });
      const told = [off, on].map((one) => one.heard("deadlock"));
      const enough = new AbortController();
      const ended = Promise.all([
        nest(off, world, ["a", "b"], enough.signal),
        nest(on, world, ["b", "a"], enough.signal),
      ]);
      await world.pass(60_000);
      expect(told).toEqual([[], []]);
      enough.abort(ENOUGH);
      expect(await ended).toEqual(["given up", "given up"]);
    }),
  );

  test(
    "one keeps its lease outside of every scope: that is invisible",
    scene(async (world) => {
      const both = world.processes(2, { deadlocks: "reject" });
      const told = both.map((one) => one.heard("deadlock"));
      const enough = new AbortController();
      const { signal } = enough;
      const held = await both[0].take("lock");
      const scoped = nest(both[1], world, ["b", "a"], signal);
      await world.pass(200);
      const waiting = outcomeOf(both[0].scope(() => both[0].take("lock", { name: "b", signal })));
      await world.pass(60_000);
      expect(told).toEqual([[], []]);
      enough.abort(ENOUGH);
      expect([await scoped, await waiting]).toEqual(["given up", ["given up", undefined]]);
      await held.unlock();
    }),
  );

  test(
    "one part of a scope waits, and another part takes longer than 10 s to unlock: the scope is reported as stuck",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const told = [one, other].map((process) => process.heard("deadlock"));
      const stuck = one.scope(async () => {
        const slow = await one.take("lock");
        const unlocking = world.pass(20_000).then(() => slow.unlock());
        await world.pass(100);
        const lease = await one.take("lock", { name: "b" });
        await lease.unlock();
        await unlocking;
      });
      const { result, took } = await world.timed(Promise.all([nest(other, world, ["b", "a"]), stuck]));
      expect(result[0]).toBe("both");
      expect(took).toBeLessThan(20_100);
      expect(told).toMatchObject([[{ rejected: false }], [{ rejected: false }]]);
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
