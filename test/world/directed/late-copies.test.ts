import { expect, test } from "vitest";
import type { Call } from "../../../src/redis/driver.ts";
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

test(
  "cached reads: a copy of their acquire owns them after they were released: the writer has the lock at once",
  scene(async (world) => {
    const [ghost] = world.processes(1, { linger: 1_000 });
    const [writer] = world.processes(1);
    await warm(world, ghost, writer);
    const forCache = ({ script: { name }, argv }: Call): boolean =>
      /^counted\/(first-)?acquire$/.test(name) && argv.includes("+");
    const cut = ghost.on(forCache).sent(() => ghost.commands.cut({ copies: 150, back: 20 }));
    const copied = cut.then(() => true);
    // A client tries now and then whether caching a name pays.
    for (let isCut = false; !isCut; isCut = await Promise.race([copied, world.pass(1).then(() => false)]))
      await (await ghost.take("read")).unlock();
    await (await writer.take("write")).unlock();
    await ghost.on(forCache).executed();
    expect(world.redis.holders("rw:a")).toEqual([ghost.number]);
    const { result: next, took } = await world.timed(writer.take("write"));
    expect(took).toBeLessThan(10);
    await next.unlock();
  }),
);

test(
  "a recall is read while the release of its hold is under way: it costs no command, and no loss is reported",
  scene(async (world) => {
    const [holder, waiter] = world.processes(2);
    await warm(world, holder, waiter);
    const lost = holder.heard("lost");
    const held = await holder.take("lock");
    holder.commands.freeze(500);
    const before = holder.sent;
    const unlocking = held.unlock();
    const waiting = waiter.take("lock");
    await holder.onMessage("recall");
    // The release is then sent once more, as text: after a withdrawal it would find nothing.
    world.redis.flushScripts();
    await unlocking;
    await (await waiting).unlock();
    expect([lost, holder.sent - before]).toEqual([[], 2]);
  }),
);
