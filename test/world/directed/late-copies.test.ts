import { expect, test } from "vitest";
import type { Call } from "../../../src/redis/call.ts";
import { scene } from "./scene.ts";
import { L, warm } from "./steps.ts";

// The connection breaks while an acquire is under way. The client sends it again, and the network
// delivers the first copy after the hold has ended: the copy owns the lock for no caller.

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
  "a writer that became a reader: late copies of both its commands give later readers no older token",
  scene(async (world) => {
    const [ghost, reader] = world.processes(2);
    await (await ghost.take("write")).unlock();
    const copyOf = (command: string, copies: number): Promise<void> =>
      ghost.on(command).sent(() => ghost.commands.cut({ copies, back: 20 }));
    await ghost.scope(async () => {
      const acquire = copyOf("acquire", 500);
      const writer = await ghost.take("write");
      await acquire;
      const reading = await ghost.take("read");
      const downgrade = copyOf("release", 600);
      await writer.unlock();
      await downgrade;
      await reading.unlock();
    });
    const before = await reader.take("read");
    await before.unlock();
    await ghost.on("acquire").executed();
    await ghost.on("release").executed();
    expect(world.redis.holders("rw:a")).toEqual([ghost.number]);
    const after = await reader.take("read");
    expect(after.token).toBeGreaterThan(before.token);
    await after.unlock();
    await world.pass(L); // the hold of the copies ends
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
