import { describe, expect, test } from "vitest";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, inTurn, L, outcomeOf, parked, R, warm } from "./steps.ts";

// docs/guarantees.md, "When Redis fails", "When Redis loses the key", "After a failover" and "What
// fencing tokens add".

const UNAVAILABLE = ["LOCK_UNAVAILABLE", undefined] as const;

describe("Redis is down for less than the lease", () => {
  test(
    "the holder keeps the lock, and parked callers keep their places",
    scene(async (world) => {
      const [holder, first, second] = world.processes(3);
      const { held, waiting } = await parked(world, holder, [first, second]);
      const places = world.redis.places("lock:a");
      world.redis.restart(15_000);
      await world.pass(14_000);
      expect(held.held).toBe(true);
      await world.pass(L);
      expect(held.held).toBe(true);
      expect(new Set(world.redis.queue("lock:a"))).toEqual(new Set([first.number, second.number]));
      expect(places).toHaveLength(2);
      await held.unlock();
      await Promise.all(waiting.map(async (one) => (await one).unlock()));
    }),
  );

  test(
    "new calls end after min(5 s, max(wait, 500 ms)); parked ones when their time is over: LOCK_UNAVAILABLE",
    scene(async (world) => {
      const [holder, other, caller] = world.processes(3);
      const held = await holder.take("lock");
      const parkedFor = world.timed(outcomeOf(other.take("lock", { wait: 8_000 })));
      await world.pass(1_000);
      world.redis.restart(20_000);
      const calls = [10, 2_000, 60_000].map((wait) =>
        world.timed(outcomeOf(caller.take("lock", { wait, name: "b" }))),
      );
      const others = [
        caller.does(() => caller.client.lock("lock:b").isLocked()),
        caller.does(() => caller.client.lock("lock:b").withLock({ wait: 200 }, () => {})),
      ].map(outcomeOf);
      const ended = await Promise.all(calls);
      expect(ended.map(({ result }) => result)).toEqual([UNAVAILABLE, UNAVAILABLE, UNAVAILABLE]);
      expect(await Promise.all(others)).toEqual([UNAVAILABLE, UNAVAILABLE]);
      for (const [i, most] of [500, 2_000, 5_000].entries()) {
        expect(ended[i]?.took).toBeGreaterThan(0.99 * most);
        expect(ended[i]?.took).toBeLessThan(most + 50);
      }
      const { result, took } = await parkedFor;
      expect(result).toEqual(UNAVAILABLE);
      expect(took).toBeGreaterThan(7_990);
      expect(took).toBeLessThan(8_050);
      await world.pass(20_000);
      await held.unlock();
    }),
  );
});

test(
  "Redis is down for longer than the lease: the signal aborts with `expired` at the lease's deadline",
  scene(async (world) => {
    const [holder, other] = world.processes(2);
    const { held, waiting } = await parked(world, holder, [other]);
    const rest = world.redis.left("lock:a");
    world.redis.restart(L + 5_000);
    const aborted = new Promise<void>((resolve) =>
      held.lease.signal.addEventListener("abort", () => resolve()),
    );
    const { took } = await world.timed(aborted);
    expect(took).toBeGreaterThan(0.98 * rest);
    expect(took).toBeLessThan(rest);
    expect(held.lease.signal.reason).toMatchObject({ reason: "expired" });
    await (await waiting[0]).unlock();
    await held.unlock().catch(() => {});
  }),
);

test.each([
  ["Redis hangs", ({ redis }: Scene) => redis.pause(L + 5_000)],
  [
    "the holder's command connection is half open",
    (_: Scene, holder: SceneProcess) => holder.commands.freeze(2 * L),
  ],
] as const)(
  "%s for longer than the lease: the signal aborts at its deadline, before another caller is inside",
  (_, fault) =>
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { held, waiting } = await parked(world, holder, [other]);
      const errors = holder.heard("error");
      const rest = world.redis.left("lock:a");
      fault(world, holder);
      const { took } = await world.timed(
        new Promise<void>((resolve) => held.lease.signal.addEventListener("abort", () => resolve())),
      );
      expect(took).toBeGreaterThan(0.98 * rest);
      expect(took).toBeLessThan(rest);
      expect(held.lease.signal.reason).toMatchObject({ reason: "expired" });
      expect(errors[0]).toMatchObject({ code: "LOCK_UNAVAILABLE" });
      const next = await waiting[0];
      // Its late renewals and its `leave` harm no caller.
      await world.pass(2 * L);
      expect([next.held, world.redis.holders("lock:a")]).toEqual([true, [other.number]]);
      expect(await outcomeOf(held.unlock())).toEqual(["LOCK_LOST", "expired"]);
      await next.unlock();
    })(),
);

test(
  "Redis is full: the holder renews, unlocks and hands over; new calls fail; parked callers keep their places",
  scene(async (world) => {
    const [holder, first, second, caller] = world.processes(4);
    const { held, waiting } = await parked(world, holder, [first, second]);
    world.redis.refuse("OOM");
    // One that is held, and one that is free.
    for (const name of ["a", "b"])
      expect(await outcomeOf(caller.take("lock", { name, wait: 1_000 }))).toEqual(UNAVAILABLE);
    await holder.on("renew").executed();
    await world.pass(1);
    expect(held.held).toBe(true);
    await held.unlock();
    await inTurn(world, ...waiting);
    world.redis.refuse(null);
  }),
);

test.each(["READONLY", "MISCONF", "NOREPLICAS", "LOADING"] as const)(
  "Redis replies %s for less than the lease: the holder and the waiters keep what they have, new calls fail with the reason",
  (refusal) =>
    scene(async (world) => {
      const [holder, other, caller] = world.processes(3);
      const { held, waiting } = await parked(world, holder, [other]);
      world.redis.refuse(refusal);
      const call = caller.take("lock", { name: "b", wait: 1_000 });
      await expect(call).rejects.toMatchObject({
        code: "LOCK_UNAVAILABLE",
        message: expect.stringContaining(refusal),
      });
      await world.pass(15_000);
      world.redis.refuse(null);
      await world.pass(2_000);
      expect(held.held).toBe(true);
      await held.unlock();
      await (await waiting[0]).unlock();
    })(),
);

/** Redis loses the key, and the waiter has the lock: both believe it. */
async function lose(world: Scene, holder: SceneProcess, waiter: SceneProcess, options = {}) {
  const held = await holder.take("lock", options);
  const waiting = waiter.take("lock");
  await world.pass(100);
  world.redis.drop("lock:a");
  world.shows(/two holders of lock:a/);
  const { result: next, took } = await world.timed(waiting);
  expect(took).toBeLessThanOrEqual(R);
  expect(held.held).toBe(true);
  expect(next.token).toBeGreaterThan(held.token);
  return { held, next };
}

describe("Redis loses the key", () => {
  test(
    "a holder with the watchdog notices at its next renewal, at most L / 3 later",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { held, next } = await lose(world, holder, other);
      const { signal } = held.lease;
      const { took } = await world.timed(
        new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve())),
      );
      expect(took).toBeLessThanOrEqual(L / 3);
      expect(signal.reason).toMatchObject({ reason: "taken" });
      expect(await outcomeOf(held.unlock())).toEqual(["LOCK_LOST", "taken"]);
      await next.unlock();
    }),
  );

  test.each([
    ["extend()", "taken"],
    ["unlock()", "taken"],
    ["the end of its lease", "expired"],
  ] as const)("a holder without it notices at %s", (how, reason) =>
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { held, next } = await lose(world, holder, other, { lease: 15_000 });
      await world.pass(10_000);
      expect(held.held).toBe(true);
      if (how === "extend()") expect(await outcomeOf(held.lease.extend(L))).toEqual(["LOCK_LOST", reason]);
      else if (how === "unlock()") expect(await outcomeOf(held.unlock())).toEqual(["LOCK_LOST", reason]);
      else await world.pass(5_000);
      expect(held.held).toBe(false);
      if (how === "the end of its lease") expect(held.lease.signal.reason).toMatchObject({ reason });
      await held.unlock().catch(() => {});
      await next.unlock();
    })(),
  );

  test(
    "and the queue: waiters queue again at their next re-checks, and the first one gets the lock",
    scene(async (world) => {
      const [holder, ...others] = world.processes(4);
      const { held, waiting } = await parked(world, holder, others);
      world.shows(/two holders of lock:a/);
      world.redis.dropAll();
      const order: number[] = [];
      const all = waiting.map(async (one, i) => {
        const { result, took } = await world.timed(one);
        order.push(i);
        // The first one has it for longer than the others need to come back.
        if (order.length === 1) {
          expect(took).toBeLessThanOrEqual(R);
          await world.pass(2 * R);
          expect(world.redis.queue("lock:a")).toHaveLength(2);
        }
        await result.unlock();
      });
      await Promise.all(all);
      expect(order).toHaveLength(3);
      expect(await outcomeOf(held.unlock())).toMatchObject([
        "LOCK_LOST",
        expect.stringMatching(/gone|taken/),
      ]);
    }),
  );

  test(
    "a later caller of the process gets it by a local hand-off, with a smaller token than the next holder's",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      world.shows(/two holders of lock:a/);
      world.shows(/token \d+ after/);
      const opening = await holder.take("lock");
      const [first, local] = [holder.take("lock"), holder.take("lock")];
      await opening.unlock(); // the first local hand-off asks for tokens
      const held = await first;
      await world.pass(10);
      world.redis.drop("lock:a");
      const next = await other.take("lock");
      await held.unlock();
      const { result: late, took } = await world.timed(local);
      expect(took).toBeLessThan(BY_MESSAGE);
      expect([late.held, late.token < next.token]).toEqual([true, true]);
      // More than 100 ms after Redis has answered, no caller gets it without asking.
      const later = holder.take("lock");
      await world.pass(200);
      await late.unlock().catch(() => {});
      await world.pass(100);
      await next.unlock();
      expect((await later).token).toBeGreaterThan(next.token);
      await (await later).unlock();
    }),
  );

  test.each(["gone", "taken"] as const)(
    "during local hand-offs (%s): its caller is notified soon, and once; the next one has it anew",
    (reason) =>
      scene(async (world) => {
        const [holder, other] = world.processes(2);
        await warm(world, holder, other);
        if (reason === "taken") {
          world.shows(/two holders of lock:a/);
          world.shows(/token \d+ after/);
        }
        const lost = holder.heard("lost");
        const opening = await holder.take("lock");
        const [one, two, three] = [holder.take("lock"), holder.take("lock"), holder.take("lock")];
        await opening.unlock(); // the first local hand-off asks for tokens
        const first = await one;
        await world.pass(10);
        world.redis.drop("lock:a");
        const next = reason === "taken" ? await other.take("lock") : null;
        await first.unlock();
        const { result: second, took } = await world.timed(two);
        expect([took < BY_MESSAGE, second.token > first.token]).toEqual([true, true]);
        const noticed = await world.timed(world.until(() => !second.held));
        expect(noticed.took).toBeLessThan(200);
        expect(second.lease.signal.reason).toMatchObject({ code: "LOCK_LOST", reason });
        await next?.unlock();
        const third = await three;
        expect(third.token).toBeGreaterThan(next?.token ?? second.token);
        expect([third.held, lost.map(({ token }) => token)]).toEqual([true, [second.token]]);
        await third.unlock();
        await outcomeOf(second.unlock());
      })(),
  );
});

describe("after a failover", () => {
  test(
    "to a server with the keys: the holder keeps the lock, waiters their places, and messages arrive again",
    scene(async (world) => {
      const [holder, first, second] = world.processes(3);
      const { held, waiting } = await parked(world, holder, [first, second]);
      const places = world.redis.places("lock:a");
      world.redis.restart(1_000);
      await world.pass(3_000);
      expect(world.redis.places("lock:a")).toEqual(places);
      await held.unlock();
      await inTurn(world, ...waiting);
    }),
  );

  test(
    "to a server without them: both believe it until the first one's renewal, and waiters queue again",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { held, waiting } = await parked(world, holder, [other]);
      world.shows(/two holders of lock:a/);
      world.redis.restart(1_000, { isEmpty: true });
      const { result: next, took } = await world.timed(waiting[0]);
      expect(took).toBeLessThanOrEqual(1_000 + R);
      expect(next.token).toBeGreaterThan(held.token);
      await world.pass(L / 3);
      expect(held.lease.signal.reason).toMatchObject({ reason: "taken" });
      await next.unlock();
      await held.unlock().catch(() => {});
    }),
  );
});

describe("tokens", () => {
  test(
    "grow with every change of holder, including local hand-offs",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      let last = 0;
      for (let i = 0; i < 40; i++) {
        const lease = await (i % 4 === 0 ? other : one).take("lock");
        expect(lease.token).toBeGreaterThan(last);
        last = lease.token;
        await lease.unlock();
      }
    }),
  );

  test(
    "grow also when the last one is lost with the data",
    scene(async (world) => {
      const [one] = world.processes(1);
      const first = await one.take("lock");
      await first.unlock();
      world.redis.dropAll();
      const second = await one.take("lock");
      expect(second.token).toBeGreaterThan(first.token);
      await second.unlock();
    }),
  );

  test(
    "do not grow if the new server's clock is behind by more than the time since the last grant",
    scene(async (world) => {
      const [one] = world.processes(1);
      const first = await one.take("lock");
      await first.unlock();
      world.redis.setBack(1_000);
      world.redis.dropAll();
      world.shows(/token \d+ after/);
      const second = await one.take("lock");
      expect(second.token).toBeLessThan(first.token);
      await second.unlock();
    }),
  );

  test(
    "grow when the server's clock is set back and the last one is kept",
    scene(async (world) => {
      const [one] = world.processes(1);
      const first = await one.take("lock");
      await first.unlock();
      world.redis.setBack(3_600_000);
      const second = await one.take("lock");
      expect(second.token).toBeGreaterThan(first.token);
      await second.unlock();
    }),
  );
});

describe("the server's clock", () => {
  test(
    "is set back by an hour: the holder keeps the lock, and hands it over by message",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { held, waiting } = await parked(world, holder, [other]);
      world.redis.setBack(3_600_000);
      await world.pass(2 * L);
      expect(held.held).toBe(true);
      await held.unlock();
      await inTurn(world, ...waiting);
    }),
  );

  test(
    "is set back by an hour, and the holder crashes: the others are blocked for that hour",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { waiting } = await parked(world, holder, [other]);
      world.redis.setBack(3_600_000);
      holder.crash();
      const { result, took } = await world.timed(waiting[0]);
      expect(took).toBeGreaterThan(3_600_000);
      expect(took).toBeLessThan(3_600_000 + L + R);
      await result.unlock();
    }),
  );

  test(
    "is set back by an hour, and the holder crashes: forceUnlock() frees the lock",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { waiting } = await parked(world, holder, [other]);
      world.redis.setBack(3_600_000);
      holder.crash();
      await other.client.lock("lock:a").forceUnlock();
      await inTurn(world, ...waiting);
    }),
  );

  test(
    "jumps an hour forward: the holder notices at its next renewal, and the waiter has the lock at a re-check",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { held, waiting } = await parked(world, holder, [other]);
      world.redis.setBack(-3_600_000);
      world.shows(/two holders of lock:a|believes that it holds it/);
      const { result: next, took } = await world.timed(waiting[0]);
      expect(took).toBeLessThanOrEqual(R);
      expect(next.token).toBeGreaterThan(held.token);
      await world.pass(L / 3);
      expect(held.lease.signal.reason).toMatchObject({ reason: expect.stringMatching(/gone|taken/) });
      await next.unlock();
      await held.unlock().catch(() => {});
    }),
  );
});

test(
  "a process steps its own clock forward: it gives up leases too early, and releases them",
  scene(async (world) => {
    const [holder, other] = world.processes(2);
    const { held, waiting } = await parked(world, holder, [other]);
    holder.stepClock(3_600_000);
    expect(held.held).toBe(false);
    expect(held.lease.signal.reason).toMatchObject({ reason: "expired" });
    await (await waiting[0]).unlock();
    await held.unlock().catch(() => {});
  }),
);

test(
  "SCRIPT FLUSH: no caller notices",
  scene(async (world) => {
    const [holder, other] = world.processes(2);
    await warm(world, other, holder);
    const { held, waiting } = await parked(world, holder, [other]);
    world.redis.flushScripts();
    const unknown = holder.on("release").unknown();
    const unlocking = held.unlock();
    await unknown;
    await unlocking;
    await (await waiting[0]).unlock();
  }),
);
