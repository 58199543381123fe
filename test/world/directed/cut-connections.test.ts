import { describe, expect, test } from "vitest";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, inTurn, parked, R, W } from "./steps.ts";

// The connections of a waiting client are cut at each step of its way: from the first try to the
// claim of what it was granted. It gets the lock, once, and leaves nothing behind.

const cutBoth = (one: SceneProcess): void => {
  one.commands.cut();
  one.messages.cut();
};

const ON_THE_WAY: Readonly<Record<string, (world: Scene, one: SceneProcess) => Promise<void>>> = {
  "with the first try": (_, one) => one.on("acquire").sent(() => one.commands.cut()),
  "before SUBSCRIBE": async ({ pass }, one) => {
    await one.on("acquire").answered();
    await pass(0.1);
    one.messages.cut();
  },
  "before SUBSCRIBE is acknowledged": async ({ pass }, one) => {
    await one.on("acquire").answered();
    await pass(0.3);
    one.messages.cut();
  },
  "with the message by which the subscriber tests itself": (_, one) =>
    one.on("probe").sent(() => cutBoth(one)),
  "between SUBSCRIBE and the place in the queue": async (_, one) => {
    await one.on("acquire").answered();
    await one.on("acquire").sent(() => cutBoth(one));
  },
  "with a re-check": (_, one) => one.on("recheck").sent(() => cutBoth(one)),
};

describe("a connection is cut", () => {
  test.each(Object.entries(ON_THE_WAY))("%s: the caller gets a place, and then the lock", (_, cut) =>
    scene(async (world) => {
      const [near, far] = world.processes(2);
      const held = await far.take("lock");
      const happened = cut(world, near);
      const waiting = near.take("lock");
      await happened;
      await world.until(() => world.redis.queue("lock:a").length === 1);
      await world.pass(2 * R);
      expect(world.redis.queue("lock:a")).toEqual([near.number]);
      await held.unlock();
      await inTurn(world, waiting);
    })(),
  );

  test.each(["both", "messages", "commands"] as const)(
    "while the caller is parked (%s): it keeps its place, re-checks at once, and receives the grant",
    (which) =>
      scene(async (world) => {
        const [near, far] = world.processes(2);
        const { held, waiting } = await parked(world, far, [near]);
        const places = world.redis.places("lock:a");
        if (which !== "messages") near.commands.cut();
        if (which !== "commands") near.messages.cut();
        expect((await world.timed(near.on("recheck").executed())).took).toBeLessThan(100);
        await world.pass(100);
        expect(world.redis.places("lock:a")).toEqual(places);
        await held.unlock();
        await inTurn(world, waiting[0]);
      })(),
  );

  test(
    "while the grant is under way: the re-check after the reconnect finds it",
    scene(async (world) => {
      const [near, far] = world.processes(2);
      const { held, waiting } = await parked(world, far, [near]);
      const cut = far.on("release").executed(() => cutBoth(near));
      await held.unlock();
      await cut;
      const granted = world.redis.holds("lock:a");
      const found = near.on("recheck").executed();
      const { result: lease, took } = await world.timed(waiting[0]);
      await found;
      expect(took).toBeLessThan(100);
      expect(lease.token).toBeGreaterThan(held.token);
      expect(world.redis.holds("lock:a")).toEqual(granted);
      await lease.unlock();
    }),
  );

  test(
    "while the grant is under way, and for longer than the window: the next caller has the lock",
    scene(async (world) => {
      const [near, far, third] = world.processes(3);
      const { held, waiting } = await parked(world, far, [near, third]);
      near.messages.freezeReplies(100);
      await held.unlock();
      near.cutOff(8_000);
      const { result: next, took } = await world.timed(waiting[1]);
      expect(took).toBeLessThanOrEqual(W + R);
      await world.until(() => world.redis.queue("lock:a").length === 1);
      expect(next.held).toBe(true);
      await next.unlock();
      const last = await waiting[0];
      expect(last.token).toBeGreaterThan(next.token);
      await last.unlock();
    }),
  );

  test.each(["sent", "executed"] as const)(
    "when the claim is %s: the caller gets the lease that it asked for",
    (step) =>
      scene(async (world) => {
        const [near, far] = world.processes(2);
        const { held, waiting } = await parked(world, far, [near], { lease: 20_000 });
        const cut = near.on("renew")[step](() => near.commands.cut());
        await held.unlock();
        await cut;
        const { result: lease, took } = await world.timed(waiting[0]);
        expect(took).toBeLessThan(20 + 50 + BY_MESSAGE);
        expect(lease.lease.remaining).toBeGreaterThan(15_000);
        expect(world.redis.left("lock:a")).toBeGreaterThan(15_000);
        expect(await far.tryTake("lock")).toBeNull();
        await lease.unlock();
      })(),
  );
});
