import { expect, test } from "vitest";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";

// The connection breaks while an acquire is under way. The client sends it again, and the network
// delivers the first copy after the hold has ended: the copy owns the lock for no caller.

/** A process that has waited once receives messages. */
async function warm({ pass }: Scene, one: SceneProcess, other: SceneProcess): Promise<void> {
  const held = await other.take("lock", { name: "w" });
  const waiting = one.take("lock", { name: "w" });
  await pass(100);
  await held.unlock();
  await (await waiting).unlock();
}

test.each([
  ["a lock", {}, {}],
  ["a lock with a label", {}, { label: "night run" }],
  ["a lock that may be cached", { linger: 1_000 }, {}],
])(
  "%s: a copy of its acquire owns it after it was released: the next waiter has it at once",
  (_, options, call) =>
    scene(async (world) => {
      const [ghost] = world.processes(1, options);
      const [waiter] = world.processes(1);
      await warm(world, ghost, waiter);
      const cut = ghost.on("acquire").sent(() => ghost.commands.cut({ copies: 150, back: 20 }));
      const lease = await ghost.take("lock", call);
      await cut;
      await lease.unlock();
      await (await waiter.take("lock")).unlock();
      await ghost.on("acquire").executed();
      expect(world.redis.holders("lock:a")).toEqual([ghost.number]);
      const { result: next, took } = await world.timed(waiter.take("lock"));
      expect(took).toBeLessThan(10);
      expect(next.token).toBeGreaterThan(lease.token);
      await next.unlock();
    })(),
);
