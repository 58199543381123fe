import { expect, test } from "vitest";
import { type Scene, scene } from "./scene.ts";
import type { SceneLease, SceneProcess } from "./scene-process.ts";
import { L, warm } from "./steps.ts";

// How a holder notices waiters while messages are lost: `lease.wanted`.

const LONG = 3_600_000;
const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve())));

/** Another process waits, and gets the lock when it is given up. Returns after how many ms. */
async function giveWay(world: Scene, held: SceneLease, other: SceneProcess): Promise<number> {
  const waiting = other.take("lock");
  const { took } = await world.timed(aborted(held.lease.wanted));
  expect(held.lease.wanted.reason).toMatchObject({ code: "LOCK_WANTED" });
  expect(held.held).toBe(true);
  await held.unlock();
  await (await waiting).unlock();
  return took;
}

test(
  "renewals report a waiter if SUBSCRIBE is never answered",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    one.withoutMessages(LONG);
    one.heard("error");
    const held = await one.take("lock");
    expect(held.lease.wanted.aborted).toBe(false);
    expect(await giveWay(world, held, other)).toBeLessThanOrEqual(L / 3);
  }),
);

test(
  "a lease without renewals is notified as soon as messages arrive",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    one.withoutMessages(20_000);
    one.heard("error");
    const held = await one.take("lock", { lease: 60_000 });
    expect(held.lease.wanted.aborted).toBe(false);
    // It gives up on the subscription, and asks all the same.
    await one.on("renew").executed();
    const waiting = other.take("lock");
    await world.pass(100);
    expect(held.lease.wanted.aborted).toBe(false);
    const { took } = await world.timed(aborted(held.lease.wanted));
    expect(took).toBeGreaterThan(5_000);
    expect(took).toBeLessThan(20_000);
    await held.unlock();
    await (await waiting).unlock();
  }),
);

test(
  "a Redis that hangs at the first read does not abort the signal",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const held = await one.take("lock", { lease: 60_000 });
    world.redis.pause(3_000);
    const { wanted } = held.lease;
    await world.pass(5_000);
    expect(wanted.aborted).toBe(false);
    expect(await giveWay(world, held, other)).toBeLessThan(5);
  }),
);

test.each(["commands", "messages", "both"] as const)(
  "a lost connection does not abort the signal, and a later waiter does: %s",
  (which) =>
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const held = await one.take("lock");
      const { wanted } = held.lease;
      await world.pass(100);
      if (which !== "messages") one.commands.cut();
      if (which !== "commands") one.messages.cut();
      await world.pass(1_000);
      expect(wanted.aborted).toBe(false);
      expect(await giveWay(world, held, other)).toBeLessThan(5);
    })(),
);

test(
  "a waiter that comes while messages are lost is reported when they arrive again",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const held = await one.take("lock", { lease: 60_000 });
    const { wanted } = held.lease;
    await world.pass(100);
    one.messages.cut({ back: 5_000 });
    const waiting = other.take("lock");
    await world.pass(1_000);
    expect(wanted.aborted).toBe(false);
    const { took } = await world.timed(aborted(wanted));
    expect(took).toBeLessThan(5_000);
    await held.unlock();
    await (await waiting).unlock();
  }),
);

test(
  "a hold whose messages were lost before the first read is checked in Redis",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    await warm(world, one, other);
    const held = await one.take("lock", { lease: 60_000 });
    one.messages.cut();
    const waiting = other.take("lock");
    await world.pass(1_000);
    expect(await world.timed(aborted(held.lease.wanted))).toMatchObject({ took: expect.any(Number) });
    await held.unlock();
    await (await waiting).unlock();
  }),
);

test(
  "a client that closes during the request leaves nothing behind",
  scene(async (world) => {
    const [one] = world.processes(1);
    one.withoutMessages(LONG);
    one.heard("error");
    const held = await one.take("lock");
    const { wanted } = held.lease;
    const messages = () =>
      [...one.member.network.wires].filter(({ isOpen, end }) => isOpen && "subscribe" in end).length;
    expect(messages()).toBe(1);
    await one.does(() => one.client.close({ grace: 0 }));
    await world.pass(100);
    expect([wanted.aborted, held.lease.signal.aborted]).toEqual([false, true]);
    expect([messages(), world.redis.holders("lock:a")]).toEqual([0, []]);
    await held.unlock().catch(() => {});
  }),
);

test(
  "renewals report a waiter to a user that may not subscribe",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    one.heard("error");
    one.mayNotSubscribe();
    const held = await one.take("lock");
    expect(held.lease.wanted.aborted).toBe(false);
    expect(await giveWay(world, held, other)).toBeLessThanOrEqual(L / 3);
  }),
);

test.each<[string, object, (world: Scene, other: SceneProcess) => unknown]>([
  ["the key is deleted", {}, (world) => world.redis.drop("lock:a")],
  ["a forced release", {}, (_, other) => other.client.lock("lock:a").forceUnlock()],
  ["its end", { lease: 3_000 }, () => {}],
])("a loss aborts `signal`, never `wanted`: %s", (_, options, lose) =>
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const held = await one.take("lock", options);
    const { wanted, signal } = held.lease;
    await world.pass(100);
    await lose(world, other);
    const { took } = await world.timed(aborted(signal));
    expect(took).toBeLessThanOrEqual(L);
    // A caller that comes now does not want what is lost.
    const next = other.take("lock");
    await world.pass(3 * L);
    expect([signal.aborted, wanted.aborted, held.held]).toEqual([true, false, false]);
    await (await next).unlock();
    await held.unlock().catch(() => {});
  })(),
);
