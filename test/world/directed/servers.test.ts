import { describe, expect, test } from "vitest";
import { type Scene, scene } from "./scene.ts";
import { BY_MESSAGE, inTurn, L, outcomeOf, parked, R, warm } from "./steps.ts";

// What Redis refuses, loses and forgets: docs/protocol-faults.md, "Servers".

const refusedWith = (says: string) => ({
  code: "LOCK_UNAVAILABLE",
  cause: { message: expect.stringContaining(says) },
});
const failure = (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error);

describe.each(["READONLY", "MISCONF", "NOREPLICAS"] as const)("%s", (says) => {
  test(
    "no new holder or place is accepted, and a busy lock is still reported as busy",
    scene(async (world) => {
      const [holder, waiter, near] = world.processes(3);
      const { held, waiting } = await parked(world, holder, [waiter]);
      world.redis.refuse(says);
      expect(await failure(near.tryTake("lock", { name: "b" }))).toMatchObject(refusedWith(says));
      expect(await failure(near.take("lock", { name: "b" }))).toMatchObject(refusedWith(says));
      expect(await near.tryTake("lock")).toBeNull();
      expect(await failure(near.take("lock", { wait: 1_000 }))).toMatchObject(refusedWith(says));
      const forcing = near.does(() => near.client.lock("lock:a").forceUnlock());
      expect(await failure(forcing)).toMatchObject(refusedWith(says));
      expect([world.redis.keys("lock:b"), held.held, world.redis.queue("lock:a")]).toEqual([
        [],
        true,
        [waiter.number],
      ]);
      world.redis.refuse(null);
      await held.unlock();
      await (await waiting[0]).unlock();
    }),
  );

  test(
    "a release is refused whole: unlock() rejects, and hands over when Redis writes again",
    scene(async (world) => {
      const [holder, waiter] = world.processes(2);
      const { held, waiting } = await parked(world, holder, [waiter]);
      const before = [world.redis.holds("lock:a"), world.redis.places("lock:a")];
      world.redis.refuse(says);
      expect(await failure(held.unlock())).toMatchObject(refusedWith(says));
      expect([world.redis.holds("lock:a"), world.redis.places("lock:a")]).toEqual(before);
      await world.pass(1_000);
      world.redis.refuse(null);
      const { result: next, took } = await world.timed(waiting[0]);
      // It is tried again every 2 s, or sooner.
      expect(took).toBeLessThan(2_000 + R);
      await next.unlock();
    }),
  );

  test(
    "for less than a lease: renewals fail, and the holder keeps the lock",
    scene(async (world) => {
      const [holder, waiter] = world.processes(2);
      const errors = holder.heard("error");
      const { held, waiting } = await parked(world, holder, [waiter]);
      world.redis.refuse(says);
      await world.until(() => errors.length > 0);
      expect(errors[0]).toMatchObject(refusedWith(says));
      world.redis.refuse(null);
      await world.pass(L);
      expect([held.held, held.lease.signal.aborted]).toEqual([true, false]);
      await held.unlock();
      await (await waiting[0]).unlock();
    }),
  );

  test(
    "for longer than a lease: it expires, and the waiter has the lock afterwards",
    scene(async (world) => {
      const [holder, waiter] = world.processes(2);
      const { held, waiting } = await parked(world, holder, [waiter]);
      world.redis.refuse(says);
      await world.pass(L + 1_000);
      expect(held.lease.signal.reason).toMatchObject({ reason: "expired" });
      world.redis.refuse(null);
      const { result: next, took } = await world.timed(waiting[0]);
      expect(took).toBeLessThanOrEqual(2 * R);
      expect(await outcomeOf(held.unlock())).toEqual(["LOCK_LOST", "expired"]);
      await next.unlock();
    }),
  );
});

describe("LOADING", () => {
  test(
    "calls fail, the holder keeps the lock, and the waiter gets it afterwards",
    scene(async (world) => {
      const [holder, waiter, near] = world.processes(3);
      const { held, waiting } = await parked(world, holder, [waiter]);
      const places = world.redis.places("lock:a");
      world.redis.refuse("LOADING");
      const calls = [near.take("lock", { name: "b" }), near.take("lock", { wait: 300 })];
      for (const call of calls) expect(await failure(call)).toMatchObject(refusedWith("LOADING"));
      await world.pass(2_000);
      world.redis.refuse(null);
      expect(world.redis.places("lock:a")).toEqual(places);
      await held.unlock();
      await (await waiting[0]).unlock();
    }),
  );
});

test(
  "SCRIPT FLUSH before every step of a lock's life: no caller notices",
  scene(async (world) => {
    const [near, far] = world.processes(2, { localHandoffs: 0 });
    const { redis } = world;
    redis.flushScripts();
    const lease = await near.take("lock", { name: "b", lease: 5_000 });
    redis.flushScripts();
    await lease.lease.extend(10_000);
    redis.flushScripts();
    expect((await near.client.lock("lock:b").inspect()).token).toBe(lease.token);
    redis.flushScripts();
    await lease.unlock();
    redis.flushScripts();
    const held = await far.take("lock");
    redis.flushScripts();
    const own = [near.take("lock", { lease: 20_000 }), near.take("lock")];
    await world.pass(20);
    redis.flushScripts();
    await near.on("recheck").executed();
    // Before a release, a grant and a claim.
    redis.flushScripts();
    await held.unlock();
    const first = await own[0];
    const other = far.take("lock");
    await world.pass(20);
    // Before a yield.
    redis.flushScripts();
    await first?.unlock();
    await (await other).unlock();
    await (await own[1])?.unlock();
  }),
);

describe("a full server", () => {
  test(
    "hands over a lock at its unlock, and refuses a new caller, without leaving anything in Redis",
    scene(async (world) => {
      const [holder, waiter, near] = world.processes(3);
      const { held, waiting } = await parked(world, holder, [waiter]);
      world.redis.refuse("OOM");
      await held.unlock();
      const next = await waiting[0];
      expect(await failure(near.take("lock", { name: "b" }))).toMatchObject(refusedWith("OOM"));
      expect(await failure(near.take("lock", { wait: 1_000 }))).toMatchObject(refusedWith("OOM"));
      expect([world.redis.keys("lock:b"), world.redis.queue("lock:a")]).toEqual([[], []]);
      await next.unlock();
      world.redis.refuse(null);
    }),
  );

  test(
    "keeps a place in the queue when its command is sent again",
    scene(async (world) => {
      const [holder, waiter] = world.processes(2);
      await warm(world, waiter, holder);
      const held = await holder.take("lock");
      const cut = waiter.on("acquire").executed(() => {
        world.redis.refuse("OOM");
        waiter.commands.cut();
      });
      const waiting = waiter.take("lock");
      await cut;
      const places = world.redis.places("lock:a");
      await waiter.on("acquire").executed();
      expect(world.redis.places("lock:a")).toEqual(places);
      await held.unlock();
      await inTurn(world, waiting);
      world.redis.refuse(null);
    }),
  );

  test(
    "renews and extends holds, and accepts the claim of a lock that it has handed over",
    scene(async (world) => {
      const [holder, waiter] = world.processes(2);
      const { held, waiting } = await parked(world, holder, [waiter], { lease: 20_000 });
      world.redis.refuse("OOM");
      await holder.on("renew").executed();
      holder.member.leaseTime = 50_000;
      await held.lease.extend(50_000);
      expect(world.redis.left("lock:a")).toBeGreaterThan(49_000);
      await held.unlock();
      const next = await waiting[0];
      expect(next.lease.remaining).toBeGreaterThan(15_000);
      await next.unlock();
      world.redis.refuse(null);
    }),
  );

  test(
    "keeps the places of callers that re-check, and accepts a yield: the lock goes round",
    scene(async (world) => {
      const [holder, waiter] = world.processes(2, { localHandoffs: 0 });
      const { held, waiting } = await parked(world, holder, [waiter]);
      const own = holder.take("lock");
      await world.pass(20);
      world.redis.refuse("OOM");
      await waiter.on("recheck").executed();
      await waiter.on("recheck").executed();
      expect(world.redis.queue("lock:a")).toEqual([waiter.number]);
      const yielded = holder.on("yield").executed();
      await held.unlock();
      await yielded;
      await inTurn(world, waiting[0], own);
      world.redis.refuse(null);
    }),
  );

  test(
    "lets a crashed holder's lock go to the next waiter",
    scene(async (world) => {
      const [holder, waiter] = world.processes(2);
      const { waiting } = await parked(world, holder, [waiter]);
      world.redis.refuse("OOM");
      holder.crash();
      const { result, took } = await world.timed(waiting[0]);
      expect(took).toBeLessThanOrEqual(L + R);
      await result.unlock();
      world.redis.refuse(null);
    }),
  );

  test(
    "removes places and locks: leave and force-release",
    scene(async (world) => {
      const [holder, waiter, third] = world.processes(3);
      const { held, waiting } = await parked(world, holder, [waiter]);
      const leaving = outcomeOf(third.take("lock", { wait: 1_500 }));
      await world.pass(20);
      world.redis.refuse("OOM");
      expect(await leaving).toEqual(["LOCK_TIMEOUT", undefined]);
      await world.pass(1);
      expect(world.redis.queue("lock:a")).toEqual([waiter.number]);
      world.shows(/two holders of lock:a/);
      expect(await third.does(() => third.client.lock("lock:a").forceUnlock())).toBe(true);
      const next = await waiting[0];
      expect((await outcomeOf(held.unlock()))?.[0]).toBe("LOCK_LOST");
      await next.unlock();
      world.redis.refuse(null);
    }),
  );

  test(
    "refuses a new caller of a free or a busy lock, keeps nothing of it, and grants the lock once there is room",
    scene(async (world) => {
      const [holder, near] = world.processes(2);
      await warm(world, near, holder);
      const held = await holder.take("fairLock");
      world.redis.refuse("OOM");
      const full = refusedWith("OOM");
      expect(await failure(near.tryTake("fairLock", { name: "b" }))).toMatchObject(full);
      // It is busy, whatever Redis has room for.
      expect(await near.tryTake("fairLock")).toBeNull();
      // Their first commands ask for a place.
      for (const options of [{ wait: 1_000 }, {}])
        expect(await failure(near.take("fairLock", options))).toMatchObject(full);
      expect([world.redis.keys("fair:b"), world.redis.queue("fair:a")]).toEqual([[], []]);
      world.redis.refuse(null);
      const waiting = near.take("fairLock");
      await world.pass(20);
      await held.unlock();
      await inTurn(world, waiting);
      await (await near.take("fairLock", { name: "b" })).unlock();
    }),
  );
});

/** A holder, and two waiters. */
const three = (world: Scene) => {
  const [holder, first, last] = world.processes(3);
  return parked(world, holder, [first, last]);
};

describe("a key is deleted while the lock is held and waited for", () => {
  test.each([
    ["the queue", [":queue"]],
    ["the clients that re-check", [":clients"]],
    ["both", [":queue", ":clients"]],
  ] as const)("%s: the holder notices nothing, the waiters queue again or are found", (_, parts) =>
    scene(async (world) => {
      const { held, waiting } = await three(world);
      // Each has re-checked.
      await world.pass(2 * R);
      for (const part of parts) world.redis.drop("lock:a", part);
      await held.unlock();
      const turns = waiting.map(async (one) => (await one).unlock());
      expect((await world.timed(Promise.all(turns))).took).toBeLessThanOrEqual(2 * R);
    })(),
  );

  test(
    "the clients that re-check, while the holder stays: the next re-checks restore them",
    scene(async (world) => {
      const { held, waiting } = await three(world);
      await world.pass(2 * R);
      world.redis.drop("lock:a", ":clients");
      await world.pass(2 * R);
      expect(world.redis.keys("lock:a").some((key) => key.endsWith(":clients"))).toBe(true);
      await held.unlock();
      await inTurn(world, ...waiting);
    }),
  );

  test(
    "the clock: tokens go on growing",
    scene(async (world) => {
      const { held, waiting } = await three(world);
      world.redis.dropKey("holdfast:clock");
      await held.unlock();
      const next = await waiting[0];
      expect(next.token).toBeGreaterThan(held.token);
      world.redis.dropKey("holdfast:clock");
      await next.unlock();
      const last = await waiting[1];
      expect(last.token).toBeGreaterThan(next.token);
      await last.unlock();
    }),
  );

  test.each(["a text", "-5", "1e300"])(
    "the clock is overwritten by %s: tokens go on growing, or calls fail until it is repaired",
    (text) =>
      scene(async (world) => {
        const [one] = world.processes(1);
        const first = await one.take("lock");
        await first.unlock();
        world.redis.overwrite("holdfast:clock", text);
        if (text === "1e300") {
          expect(await outcomeOf(one.take("lock", { wait: 1_000 }))).toEqual(["LOCK_UNAVAILABLE", undefined]);
          world.redis.dropKey("holdfast:clock");
        }
        const second = await one.take("lock");
        expect(second.token).toBeGreaterThan(first.token);
        await second.unlock();
      })(),
  );

  test(
    "the lock's key gets another type: no caller enters, and work resumes when it is removed",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const held = await one.take("lock");
      await held.unlock();
      world.redis.overwriteByHash("holdfast:{lock:a}");
      expect(await failure(other.take("lock", { wait: 1_000 }))).toMatchObject(refusedWith("WRONGTYPE"));
      const before = new Map(world.redis.hash("holdfast:{lock:a}"));
      const forcing = other.does(() => other.client.lock("lock:a").forceUnlock());
      expect(await failure(forcing)).toMatchObject(refusedWith("WRONGTYPE"));
      expect(world.redis.hash("holdfast:{lock:a}")).toEqual(before);
      world.redis.dropKey("holdfast:{lock:a}");
      await inTurn(world, other.take("lock"));
    }),
  );

  test(
    "the queue's key gets another type: unlock() rejects, and work resumes when it is removed",
    scene(async (world) => {
      const [holder, waiter] = world.processes(2);
      const { held, waiting } = await parked(world, holder, [waiter]);
      world.redis.overwrite("holdfast:{lock:a}:queue", "a text");
      world.shows(/holdfast:\{lock:a\}:queue has no end/);
      expect(await failure(held.unlock())).toMatchObject(refusedWith("WRONGTYPE"));
      await world.pass(3_000);
      world.redis.dropKey("holdfast:{lock:a}:queue");
      const { result, took } = await world.timed(waiting[0]);
      expect(took).toBeLessThanOrEqual(2_000 + R);
      await result.unlock();
    }),
  );

  test.each([":clients", ":queue"] as const)(
    "%s gets another type while two callers wait: it goes on when that is removed",
    (part) =>
      scene(async (world) => {
        const { held, waiting } = await three(world);
        const [near] = world.processes(1);
        let isIn = false;
        const turns = waiting.map(async (one) => {
          const lease = await one;
          isIn = true;
          await lease.unlock();
        });
        world.redis.overwrite(`holdfast:{lock:a}${part}`, "a text");
        world.shows(/holdfast:\{lock:a\}:\w+ has no end/);
        const wrong = refusedWith("WRONGTYPE");
        const outcome = await failure(held.unlock().then(() => "unlocked"));
        if (part === ":queue") {
          expect(outcome).toMatchObject(wrong);
          expect(await failure(near.take("lock", { wait: 1_000 }))).toMatchObject(wrong);
          expect(isIn).toBe(false);
        } else expect(outcome).toBe("unlocked");
        await world.pass(3_000);
        world.redis.dropKey(`holdfast:{lock:a}${part}`);
        expect((await world.timed(Promise.all(turns))).took).toBeLessThanOrEqual(2_000 + 2 * R);
      })(),
  );

  test(
    "the clock gets another type: calls fail, no caller enters, and work resumes when it is removed",
    scene(async (world) => {
      const { held, waiting } = await three(world);
      const [near] = world.processes(1);
      let isIn = false;
      const turns = waiting.map(async (one) => {
        const lease = await one;
        isIn = true;
        await lease.unlock();
      });
      world.redis.overwriteByHash("holdfast:clock");
      await held.unlock();
      const call = near.take("lock", { name: "b", wait: 300 });
      expect(await failure(call)).toMatchObject(refusedWith("WRONGTYPE"));
      expect(isIn).toBe(false);
      world.redis.dropKey("holdfast:clock");
      expect((await world.timed(Promise.all(turns))).took).toBeLessThanOrEqual(2_000 + R);
    }),
  );

  test.each([
    ["lock", "holdfast:{lock:b}"],
    ["redissonLock", "redisson:b"],
    ["spinLock", "spin:b"],
  ] as const)("%s: a key of another type does not cost the others their renewal", (kind, key) =>
    scene(async (world) => {
      const [one] = world.processes(1);
      one.heard("error");
      const leases = [];
      for (const name of ["a", "b", "c"]) leases.push(await one.take(kind, { name }));
      if (kind === "lock") {
        world.shows(/:b\}? has no end|:b: .* believes that it holds it/);
        world.redis.overwriteByHash(key);
      } else if (kind === "spinLock") world.redis.overwriteByHash(key);
      else world.redis.overwrite(key, "a text");
      await world.pass(2 * L);
      expect(leases.map(({ held }) => held)).toEqual([true, false, true]);
      world.redis.dropKey(key);
      await leases[1]?.unlock().catch(() => {});
      for (const lease of [leases[0], leases[2]]) await lease?.unlock();
    })(),
  );

  test(
    "eight fair places of one client lose their entries: they re-check at once, one after the other",
    scene(async (world) => {
      const [holder, one] = world.processes(2);
      const held = await holder.take("fairLock");
      const turns = Array.from({ length: 8 }, async () => (await one.take("fairLock")).unlock());
      await world.pass(100);
      world.shows(/two holders of fair:a|believes/);
      world.redis.dropAll();
      expect((await world.timed(Promise.all(turns))).took).toBeLessThan(2 * R);
      await held.unlock().catch(() => {});
    }),
  );

  test.each([
    ["lock", "holdfast:{lock:a}"],
    ["fairLock", "holdfast:{fair:a}"],
  ] as const)(
    "%s: its key has a later format when a waiter's time is over: that is what it is told",
    (kind, key) =>
      scene(async (world) => {
        const [holder, waiter] = world.processes(2);
        const { waiting } = await parked(world, holder, [waiter], { kind, wait: 4_000 });
        const refused = failure(waiting[0]);
        holder.crash();
        world.redis.overwrite(key, "20 whatever that version likes");
        world.shows(/has no end|lasts for Infinity/);
        expect(await refused).toMatchObject({ code: "LOCK_FORMAT", found: 2, known: 1 });
        world.redis.dropKey(key);
      })(),
  );
});

describe("the server's clock", () => {
  test(
    "jumps an hour forward between a grant and its claim: the lock is not given to two callers",
    scene(async (world) => {
      const [near, far, next] = world.processes(3);
      const { held, waiting } = await parked(world, far, [near], { lease: 20_000 });
      near.commands.freeze(2_000);
      await held.unlock();
      world.redis.setBack(-3_600_000);
      const other = await next.take("lock");
      expect(world.redis.holders("lock:a")).toEqual([next.number]);
      await world.pass(3_000);
      expect(other.held).toBe(true);
      await other.unlock();
      const lease = await waiting[0];
      expect(lease.token).toBeGreaterThan(other.token);
      await lease.unlock();
    }),
  );

  test(
    "jumps an hour forward: commands sent before it are stale and sent again, unnoticed by the caller",
    scene(async (world) => {
      const [near] = world.processes(1);
      for (let i = 0; i < 2; i++) await (await near.take("lock")).unlock();
      world.redis.setBack(-3_600_000);
      let count = 0;
      const executed = near
        .on("acquire")
        .executed(() => count++)
        .then(() => near.on("acquire").executed(() => count++));
      const before = near.sent;
      const lease = await near.take("lock");
      await executed;
      expect(count).toBe(2);
      // Stale; that hold is left, because a first copy might have been in time; again.
      expect(near.sent - before).toBe(3);
      await lease.unlock();
    }),
  );

  test(
    "jumps an hour back: an explicit lease ends in time for its holder, which releases the lock",
    scene(async (world) => {
      const [near, far] = world.processes(2);
      const held = await near.take("lock", { lease: 1_000 });
      const waiting = far.take("lock");
      await world.pass(100);
      world.redis.setBack(3_600_000);
      expect(world.redis.left("lock:a")).toBeGreaterThan(3_600_000);
      const { result, took } = await world.timed(waiting);
      expect(took).toBeLessThan(900 + BY_MESSAGE);
      expect(held.lease.signal.reason).toMatchObject({ reason: "expired" });
      await held.unlock().catch(() => {});
      await result.unlock();
    }),
  );

  test(
    "jumps in both directions: tokens grow",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      let last = 0;
      for (const jump of [-1, 1, 1, -1, 0]) {
        for (const process of [one, other, one]) {
          const lease = await process.take("lock");
          expect(lease.token).toBeGreaterThan(last);
          last = lease.token;
          await lease.unlock();
        }
        world.redis.setBack(jump * 3_600_000);
        await world.pass(10);
      }
    }),
  );
});
