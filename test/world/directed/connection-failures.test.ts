import { describe, expect, test } from "vitest";
import { scene } from "./scene.ts";
import { BY_MESSAGE, inTurn, L, outcomeOf, parked, R, W } from "./steps.ts";

// docs/guarantees.md, "When a connection fails".

test(
  "the holder cannot reach Redis: its signal aborts before Redis lets the waiter in, within the rest of the hold and R",
  scene(async (world) => {
    const [holder, other] = world.processes(2);
    const { held, waiting } = await parked(world, holder, [other]);
    const errors = holder.heard("error");
    const aborted = new Promise<void>((resolve) =>
      held.lease.signal.addEventListener("abort", () => resolve()),
    );
    holder.cutOff(2 * L);
    const rest = world.redis.left("lock:a");
    const [lost, next] = await Promise.all([world.timed(aborted), world.timed(waiting[0])]);
    expect(lost.took).toBeLessThan(rest);
    expect(next.took).toBeLessThanOrEqual(rest + R);
    expect(held.lease.signal.reason).toMatchObject({ reason: "expired" });
    expect(errors[0]).toMatchObject({ code: "LOCK_UNAVAILABLE" });
    await next.result.unlock();
    await held.unlock().catch(() => {});
  }),
);

test(
  "a grant message is lost in a reconnect: the process finds its grant after the reconnect",
  scene(async (world) => {
    const [holder, waiter] = world.processes(2);
    const { held, waiting } = await parked(world, holder, [waiter]);
    const cut = holder.on("release").executed(() => waiter.messages.cut());
    await held.unlock();
    await cut;
    expect(world.redis.holders("lock:a")).toEqual([waiter.number]);
    const { result, took } = await world.timed(waiting[0]);
    // A listener connects again after 50 ms.
    expect(took).toBeLessThan(100);
    await result.unlock();
  }),
);

test(
  "a grant message does not arrive: the process finds its grant at its next re-check, within R",
  scene(async (world) => {
    const [holder, waiter] = world.processes(2);
    const { held, waiting } = await parked(world, holder, [waiter]);
    waiter.messages.freezeReplies(60_000);
    await held.unlock();
    const granted = world.redis.holds("lock:a");
    const found = waiter.on("recheck").executed();
    const { result, took } = await world.timed(waiting[0]);
    await found;
    expect(took).toBeLessThanOrEqual(R);
    expect(world.redis.holds("lock:a")).toEqual(granted);
    await result.unlock();
  }),
);

test(
  "a grant message does not arrive for the 101st place, whose re-check is too late: the next one has the lock, and it queues again",
  scene(async (world) => {
    const [holder, crowd, far, next] = world.processes(4);
    const held = await holder.take("fairLock");
    const enough = new AbortController();
    const left = Array.from({ length: 100 }, () =>
      outcomeOf(crowd.take("fairLock", { signal: enough.signal })),
    );
    await world.pass(10);
    const waiting = far.take("fairLock");
    await world.pass(10);
    const after = next.take("fairLock");
    // Tells it its place: the next re-check comes after 7.5 s or later.
    await far.on("recheck").answered();
    enough.abort(new Error("enough"));
    await Promise.all(left);
    await world.pass(1);
    far.messages.freezeReplies(W + R);
    await held.unlock();
    expect(world.redis.holders("fair:a")).toEqual([far.number]);
    const again = far.on("acquire").executed();
    const { result, took } = await world.timed(after);
    expect(took).toBeGreaterThanOrEqual(W - 1);
    await again;
    await result.unlock();
    await (await waiting).unlock();
  }),
);

test(
  "the subscriber connection is half open: a re-check finds the grant, and the client replaces the connection",
  scene(async (world) => {
    const [holder, waiter] = world.processes(2);
    const { held, waiting } = await parked(world, holder, [waiter]);
    waiter.messages.freeze(3_600_000);
    await held.unlock();
    const { result, took } = await world.timed(waiting[0]);
    expect(took).toBeLessThanOrEqual(R);
    await result.unlock();
    await world.pass(10_000);
    const again = await parked(world, holder, [waiter]);
    await again.held.unlock();
    await inTurn(world, again.waiting[0]);
  }),
);

test(
  "the subscriber connection is dropped unnoticed: the waiter is skipped, queues again, and replaces the connection",
  scene(async (world) => {
    const [holder, waiter] = world.processes(2);
    const { held, waiting } = await parked(world, holder, [waiter]);
    waiter.messages.dropUnnoticed();
    await world.pass(1);
    await held.unlock();
    expect(world.redis.holders("lock:a")).toEqual([]);
    const { result, took } = await world.timed(waiting[0]);
    expect(took).toBeLessThanOrEqual(R);
    await result.unlock();
    await world.pass(10_000);
    const again = await parked(world, holder, [waiter]);
    await again.held.unlock();
    await inTurn(world, again.waiting[0]);
  }),
);

test(
  "the command connection of the holder breaks: the lease stays held, and renewals go on",
  scene(async (world) => {
    const [holder, other] = world.processes(2);
    const { held, waiting } = await parked(world, holder, [other]);
    await holder.on("renew").sent(() => holder.commands.cut());
    await holder.on("renew").executed();
    await world.pass(L);
    expect(held.held).toBe(true);
    await held.unlock();
    await inTurn(world, waiting[0]);
  }),
);

test(
  "the command connection of a waiter breaks: it keeps its place, and re-checks after the reconnect",
  scene(async (world) => {
    const [holder, first, second] = world.processes(3);
    const { held, waiting } = await parked(world, holder, [first, second]);
    const places = world.redis.places("lock:a");
    first.commands.cut({ back: 500 });
    const { took } = await world.timed(first.on("recheck").executed());
    expect(took).toBeLessThan(600);
    expect(world.redis.places("lock:a")).toEqual(places);
    await held.unlock();
    await inTurn(world, ...waiting);
  }),
);

describe("the command connection is half open", () => {
  test(
    "a shared one: as if Redis could not be reached, until it is replaced",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { held, waiting } = await parked(world, holder, [other]);
      holder.commands.freeze(3_600_000);
      expect(await outcomeOf(holder.take("lock", { name: "b" }))).toEqual(["LOCK_UNAVAILABLE", undefined]);
      // TCP notices.
      await world.pass(L / 2);
      holder.commands.cut();
      await world.pass(100);
      await (await holder.take("lock", { name: "b" })).unlock();
      await world.pass(L);
      expect(held.held).toBe(true);
      await held.unlock();
      await inTurn(world, waiting[0]);
    }),
  );

  test(
    "an own one: the client replaces it after replyTimeout",
    scene(async (world) => {
      const [holder] = world.processes(1, { connection: "own" });
      const [other] = world.processes(1);
      const { held, waiting } = await parked(world, holder, [other]);
      holder.commands.freeze(3_600_000);
      const { took } = await world.timed(holder.take("lock", { name: "b" }).catch(() => null));
      expect(took).toBeLessThanOrEqual(5_100);
      await world.pass(1_000);
      await (await holder.take("lock", { name: "b" })).unlock();
      await world.pass(L);
      expect(held.held).toBe(true);
      await held.unlock();
      await inTurn(world, waiting[0]);
    }),
  );
});

describe("the connection breaks during the unlock", () => {
  test(
    "before Redis has the release: unlock() resolves after the reconnect, and the waiter has the lock",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { held, waiting } = await parked(world, holder, [other]);
      const cut = holder.on("release").sent(() => holder.commands.cut());
      await held.unlock();
      await cut;
      await inTurn(world, waiting[0]);
    }),
  );

  test(
    "the release is executed twice: unlock() resolves, because the second answer proves that the first one released",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { held, waiting } = await parked(world, holder, [other]);
      const cut = holder.on("release").executed(() => holder.commands.cut());
      const unlocking = held.unlock();
      const again = cut.then(() => holder.on("release").executed());
      const next = await waiting[0];
      await unlocking;
      await again;
      expect(next.held).toBe(true);
      await next.unlock();
    }),
  );

  test(
    "the second answer proves nothing: LockLostError, unknown",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { held, waiting } = await parked(world, holder, [other]);
      const cut = holder.on("release").executed(() => holder.commands.cut({ back: 500 }));
      const unlocking = outcomeOf(held.unlock());
      await cut;
      await (await waiting[0]).unlock();
      // The lock has been free since.
      const later = await other.take("lock");
      expect(await unlocking).toEqual(["LOCK_LOST", "unknown"]);
      await later.unlock();
    }),
  );

  test(
    "there is no answer: LockUnavailableError, and the waiter has the lock at the latest at the end of the hold",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { held, waiting } = await parked(world, holder, [other]);
      const cut = holder.on("release").sent(() => holder.cutOff(2 * L));
      const rest = world.redis.left("lock:a");
      const unlocking = world.timed(outcomeOf(held.unlock()));
      await cut;
      const { result: next, took } = await world.timed(waiting[0]);
      expect(took).toBeLessThanOrEqual(rest + R);
      const unlocked = await unlocking;
      expect(unlocked.result).toEqual(["LOCK_UNAVAILABLE", undefined]);
      expect(unlocked.took).toBeLessThanOrEqual(5_100);
      await next.unlock();
    }),
  );
});

describe("the release is slow", () => {
  test(
    "unlock() resolves although the key ends first",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const lost = holder.heard("lost");
      const held = await holder.take("lock", { lease: 2_000 });
      await world.pass(1_000);
      holder.commands.freeze(3_000);
      const unlocking = held.unlock();
      const waiting = other.take("lock");
      const { took } = await world.timed(waiting);
      expect(took).toBeLessThanOrEqual(1_000 + R);
      await unlocking;
      expect([lost, held.lease.signal.aborted]).toEqual([[], false]);
      await (await waiting).unlock();
    }),
  );

  test(
    "after replyTimeout unlock() rejects; withLock resolves, and emits an error event",
    scene(async (world) => {
      const [holder] = world.processes(1);
      const errors = holder.heard("error");
      const held = await holder.take("lock");
      const body = holder.client.lock("another").withLock(() => world.pass(10));
      await world.pass(1);
      holder.commands.freeze(20_000);
      expect(await outcomeOf(held.unlock())).toEqual(["LOCK_UNAVAILABLE", undefined]);
      await body;
      expect(errors.map(({ code }) => code)).toContain("LOCK_UNAVAILABLE");
      await world.pass(20_000);
    }),
  );
});

test(
  "a waiter is served by message again after any reconnect",
  scene(async (world) => {
    const [holder, other] = world.processes(2);
    const { held, waiting } = await parked(world, holder, [other]);
    other.cutOff(200);
    await world.pass(500);
    await held.unlock();
    const { result, took } = await world.timed(waiting[0]);
    expect(took).toBeLessThan(BY_MESSAGE);
    await result.unlock();
  }),
);
