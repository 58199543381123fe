import { expect, test } from "vitest";
import { scene } from "./scene.ts";
import { BY_MESSAGE, inTurn, L, outcomeOf, parked, R, W } from "./steps.ts";

// docs/guarantees.md, "When a process fails".

test(
  "the holder's process crashes: the first in the queue gets the lock within the rest of the hold and R",
  scene(async (world) => {
    const [holder, first, second] = world.processes(3);
    const { waiting } = await parked(world, holder, [first, second]);
    holder.crash();
    const rest = world.redis.left("lock:a");
    const { result, took } = await world.timed(waiting[0]);
    expect(took).toBeGreaterThanOrEqual(rest - 1);
    expect(took).toBeLessThanOrEqual(rest + R);
    await result.unlock();
    await inTurn(world, waiting[1]);
  }),
);

test(
  "the holder's process crashes after local hand-offs: the others wait for at most 1.5 L and R",
  scene(async (world) => {
    const [holder, other] = world.processes(2);
    // A caller with a longer lease hands the lock on, without a command.
    const first = await holder.take("lock", { lease: 1.5 * L - 1_000 });
    const second = holder.take("lock");
    await world.pass(50);
    await first.unlock();
    await second;
    const waiting = other.take("lock");
    await world.pass(50);
    holder.crash();
    const rest = world.redis.left("lock:a");
    expect(rest).toBeGreaterThan(1.4 * L);
    const { result, took } = await world.timed(waiting);
    expect(took).toBeLessThanOrEqual(rest + R);
    await result.unlock();
  }),
);

test(
  "the holder's event loop is blocked: on its next line the lease is over, before another caller has the lock",
  scene(async (world) => {
    const [holder, other] = world.processes(2);
    const { held, waiting } = await parked(world, holder, [other]);
    const rest = world.redis.left("lock:a");
    const { lease } = held;
    const { signal } = lease;
    const noticed = holder.does(() => {
      holder.block(L + 10_000);
      expect(lease.held).toBe(false);
      expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ reason: "expired" }));
      expect(lease.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      expect(signal.aborted).toBe(true);
    });
    const { result, took } = await world.timed(waiting[0]);
    expect(took).toBeLessThanOrEqual(rest + R);
    await noticed;
    await result.unlock();
    await held.unlock().catch(() => {});
  }),
);

test(
  "the holder's event loop is blocked until just after its deadline: the lease is over on its next line",
  scene(async (world) => {
    const [holder] = world.processes(1);
    const { lease, unlock } = await holder.take("lock");
    await holder.does(() => {
      holder.block(lease.remaining - 1);
      expect(lease.held).toBe(true);
      holder.block(2);
      expect(lease.held).toBe(false);
      expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ reason: "expired" }));
    });
    // Redis still has it.
    expect(world.redis.holders("lock:a")).toEqual([holder.number]);
    await unlock().catch(() => {});
  }),
);

test(
  "the holder's process is stopped: a signal that was taken before aborts at the next turn of its event loop",
  scene(async (world) => {
    const [holder, other] = world.processes(2);
    const { held, waiting } = await parked(world, holder, [other]);
    const rest = world.redis.left("lock:a");
    const { signal } = held.lease;
    holder.pause(L + 10_000);
    const { result, took } = await world.timed(waiting[0]);
    expect(took).toBeLessThanOrEqual(rest + R);
    expect(signal.aborted).toBe(false);
    await world.pass(L + 10_000 - took);
    await world.pass(1);
    expect(signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect(await outcomeOf(held.unlock())).toEqual(["LOCK_LOST", "expired"]);
    await result.unlock();
  }),
);

test.each([["an explicit lease", { lease: 5_000 }] as const, ["maxHold", { maxHold: 5_000 }] as const])(
  "%s ends: the signal aborts, the client releases the lock, and the waiter has it by one message",
  (_, options) =>
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const held = await holder.take("lock", options);
      const waiting = other.take("lock");
      const { signal } = held.lease;
      const released = holder.on("leave").executed();
      await world.pass(4_900);
      expect(signal.aborted).toBe(false);
      await released;
      expect(signal.reason).toMatchObject({ reason: "expired" });
      await inTurn(world, waiting);
      expect(await outcomeOf(held.unlock())).toEqual(["LOCK_LOST", "expired"]);
    })(),
);

test(
  "a waiting process crashes: it is skipped, and the next one has the lock by the same message",
  scene(async (world) => {
    const [holder, first, second] = world.processes(3);
    const { held, waiting } = await parked(world, holder, [first, second]);
    first.crash();
    await world.pass(50);
    await held.unlock();
    await inTurn(world, waiting[1]);
  }),
);

test(
  "a waiter times out, another one aborts: they are skipped, and the next one has the lock by the same message",
  scene(async (world) => {
    const [holder, first, second, third] = world.processes(4);
    const enough = new AbortController();
    const held = await holder.take("lock");
    const ended = [
      outcomeOf(first.take("lock", { wait: 500 })),
      second.take("lock", { signal: enough.signal }).catch((reason: unknown) => reason),
    ];
    await world.pass(50);
    const waiting = third.take("lock");
    await world.pass(600);
    enough.abort("enough");
    expect(await Promise.all(ended)).toEqual([["LOCK_TIMEOUT", undefined], "enough"]);
    await world.pass(1);
    expect(world.redis.queue("lock:a")).toEqual([third.number]);
    await held.unlock();
    await inTurn(world, waiting);
  }),
);

test(
  "a waiting process is paused: the next one waits for W and R, once",
  scene(async (world) => {
    const [holder, paused, next, last] = world.processes(4);
    const { held, waiting } = await parked(world, holder, [paused, next, last]);
    paused.pause(60_000);
    await held.unlock();
    expect(world.redis.holders("lock:a")).toEqual([paused.number]);
    const { result, took } = await world.timed(waiting[1]);
    expect(took).toBeGreaterThan(W - 1);
    expect(took).toBeLessThanOrEqual(W + R);
    await result.unlock();
    await inTurn(world, waiting[2]);
    // It queues again when it goes on.
    await (await waiting[0]).unlock();
  }),
);

test(
  "the host of a waiting process is lost: the next one waits for W and R, once",
  scene(async (world) => {
    const [holder, lost, next, last] = world.processes(4);
    const { held, waiting } = await parked(world, holder, [lost, next, last]);
    lost.vanish();
    await held.unlock();
    expect(world.redis.holders("lock:a")).toEqual([lost.number]);
    const { result, took } = await world.timed(waiting[1]);
    expect(took).toBeGreaterThan(W - 1);
    expect(took).toBeLessThanOrEqual(W + R);
    await result.unlock();
    await inTurn(world, waiting[2]);
  }),
);

test(
  "no failure: a waiter of another process has the lock by one message",
  scene(async (world) => {
    const [holder, other] = world.processes(2);
    const { held, waiting } = await parked(world, holder, [other]);
    const { took } = await world.timed(held.unlock());
    expect(took).toBeLessThan(BY_MESSAGE);
    await inTurn(world, waiting[0]);
  }),
);
