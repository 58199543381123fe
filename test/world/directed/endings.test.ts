import { describe, expect, test } from "vitest";
import { scene } from "./scene.ts";
import { BY_MESSAGE, inTurn, L, outcomeOf, parked, R, warm } from "./steps.ts";

// docs/guarantees.md, "Force-release and close()" and "What a slow release hides".

describe("forceUnlock()", () => {
  test(
    "grants the lock to the next waiter by one message; the signal of a subscribed holder aborts with `revoked`",
    scene(async (world) => {
      const [holder, other, admin] = world.processes(3);
      await warm(world, holder, admin);
      const { held, waiting } = await parked(world, holder, [other]);
      const { signal } = held.lease;
      const forcing = admin.client.lock("lock:a").forceUnlock();
      world.shows(/two holders of lock:a/);
      const next = await waiting[0];
      await forcing;
      await world.pass(1);
      expect(signal.reason).toMatchObject({ reason: "revoked" });
      expect(await outcomeOf(held.unlock())).toEqual(["LOCK_LOST", "revoked"]);
      await next.unlock();
    }),
  );

  test(
    "a holder whose client has never waited notices at its next renewal, up to L / 3 later",
    scene(async (world) => {
      const [holder, other, admin] = world.processes(3);
      const held = await holder.tryTake("lock");
      const waiting = other.take("lock");
      await world.pass(100);
      world.shows(/two holders of lock:a/);
      world.shows(/believes that it holds it/);
      await admin.client.lock("lock:a").forceUnlock();
      await world.pass(1);
      const next = await waiting;
      expect(held?.held).toBe(true);
      await world.pass(L / 3);
      expect(held?.lease.signal.reason).toMatchObject({ reason: "taken" });
      await held?.unlock().catch(() => {});
      await next.unlock();
    }),
  );
});

describe("close()", () => {
  test(
    "rejects waiters, and gives holders `grace` to finish; others are granted the lock",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { held, waiting } = await parked(world, holder, [other]);
      const own = outcomeOf(holder.take("lock"));
      await world.pass(50);
      const closing = world.timed(holder.does(() => holder.client.close()));
      expect(await own).toEqual(["CLIENT_CLOSED", undefined]);
      await world.pass(4_000);
      expect(held.held).toBe(true);
      await held.unlock();
      await inTurn(world, waiting[0]);
      expect((await closing).took).toBeLessThan(4_100);
    }),
  );

  test(
    "after `grace` the signal aborts with `closed`, and the lock is released",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { held, waiting } = await parked(world, holder, [other]);
      const closing = world.timed(holder.does(() => holder.client.close({ grace: 2_000 })));
      const next = await waiting[0];
      expect(held.lease.signal.reason).toMatchObject({ reason: "closed" });
      const { took } = await closing;
      expect(took).toBeGreaterThan(1_999);
      expect(took).toBeLessThan(2_100);
      expect(await outcomeOf(held.unlock())).toEqual(["LOCK_LOST", "closed"]);
      await next.unlock();
    }),
  );

  test(
    "while Redis is away, takes at most twice `grace`",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { held, waiting } = await parked(world, holder, [other]);
      holder.cutOff(20_000);
      const { took } = await world.timed(holder.does(() => holder.client.close({ grace: 2_000 })));
      expect(took).toBeLessThan(4_100);
      expect(held.lease.signal.reason).toMatchObject({ reason: "closed" });
      const { took: waited } = await world.timed(waiting[0]);
      expect(waited).toBeLessThanOrEqual(L + R);
      await (await waiting[0]).unlock();
      await held.unlock().catch(() => {});
    }),
  );

  test(
    "gives a Redis that does not answer one deadline for everything",
    scene(async (world) => {
      const [one] = world.processes(1, { replyTimeout: 2_000 });
      const lost = one.heard("lost");
      const held = await one.take("lock");
      one.freeze(20_000);
      const waiting = outcomeOf(one.take("lock", { name: "b" }));
      const { took } = await world.timed(one.does(() => one.client.close({ grace: 2_000 })));
      expect(took).toBeGreaterThan(1_900);
      expect(took).toBeLessThan(3_500);
      expect(await waiting).toEqual(["CLIENT_CLOSED", undefined]);
      expect(lost.map(({ name, error }) => [name, error.reason])).toEqual([["lock:a", "closed"]]);
      await outcomeOf(held.unlock());
      await world.pass(20_000);
    }),
  );
});

describe("a release that takes longer than the rest of the lease", () => {
  test(
    "hides a deletion that no renewal has found",
    scene(async (world) => {
      const [holder] = world.processes(1);
      const lost = holder.heard("lost");
      const held = await holder.take("lock", { lease: 2_000 });
      world.redis.drop("lock:a");
      await world.pass(1_500);
      holder.commands.freeze(1_000);
      await held.unlock();
      expect(lost).toEqual([]);
    }),
  );

  test(
    "in time it does not",
    scene(async (world) => {
      const [holder] = world.processes(1);
      const held = await holder.take("lock", { lease: 2_000 });
      world.redis.drop("lock:a");
      await world.pass(1_500);
      holder.commands.freeze(100);
      expect(await outcomeOf(held.unlock())).toEqual(["LOCK_LOST", "gone"]);
    }),
  );
});

describe("a block ends while Redis stands still", () => {
  /** In ms: longer than `replyTimeout`. */
  const STALL = 8_000;

  test(
    "`using` goes on before Redis answers, throws nothing, and reports a failure as an error event",
    scene(async (world) => {
      const [one] = world.processes(1);
      const errors = one.heard("error");
      const { took } = await world.timed(
        one.does(async () => {
          using lease = await one.client.lock("x").lock();
          expect(lease.held).toBe(true);
          world.redis.pause(STALL);
        }),
      );
      expect([took < BY_MESSAGE, errors]).toEqual([true, []]);
      await world.pass(STALL);
      expect(errors).toMatchObject([{ code: "LOCK_UNAVAILABLE", lockName: "x" }]);
    }),
  );

  test(
    "`using` of several locks reports the failure of each as an error event of its own",
    scene(async (world) => {
      const [one] = world.processes(1);
      const errors = one.heard("error");
      await one.does(async () => {
        using lease = await one.client.multiLock(["x", "y"]).lock();
        expect(lease.held).toBe(true);
        world.redis.pause(STALL);
      });
      await world.pass(STALL);
      expect(errors.map(({ code, lockName }) => [code, lockName]).sort()).toEqual([
        ["LOCK_UNAVAILABLE", "x"],
        ["LOCK_UNAVAILABLE", "y"],
      ]);
    }),
  );

  test(
    "`await using` waits for the answer; without one the block keeps its outcome, and an event says so",
    scene(async (world) => {
      const [one] = world.processes(1);
      const errors = one.heard("error");
      const block = async (): Promise<boolean> => {
        await using lease = await one.client.lock("x").lock();
        world.redis.pause(STALL);
        return lease.held;
      };
      const { result, took } = await world.timed(one.does(block));
      expect([result, took > 4_990, took < 5_100]).toEqual([true, true, true]);
      expect(errors).toMatchObject([{ code: "LOCK_UNAVAILABLE", lockName: "x" }]);
      await world.pass(STALL);
    }),
  );
});
