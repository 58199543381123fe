import { expect, test } from "vitest";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { inTurn, warm } from "./steps.ts";

// `connection: "own"`: only the client can replace its connection.

const own = ({ processes }: Scene, replyTimeout: number): SceneProcess =>
  processes(1, { connection: "own", replyTimeout })[0];

const isServed = async (one: SceneProcess): Promise<boolean> => {
  const lease = await one.tryTake("lock", { name: "b" }).catch(() => null);
  await lease?.unlock();
  return lease !== null;
};

/** Its callers try without a pause for so long. Returns how many connections for commands it opened. */
async function busy(world: Scene, one: SceneProcess, ms: number): Promise<number> {
  const { wires } = one.member.network;
  const isForCommands = ({ end }: { end: object }): boolean => !("subscribe" in end);
  const before = new Set([...wires].filter(isForCommands));
  const opened = new Set<object>();
  const end = world.now() + ms;
  const trying = (async () => {
    while (world.now() < end) await isServed(one);
  })();
  while (world.now() < end) {
    for (const wire of wires) if (isForCommands(wire) && !before.has(wire)) opened.add(wire);
    await world.pass(5);
  }
  await trying;
  return opened.size;
}

test(
  "it is half open: it is replaced, and the client keeps its lease and its place in the queue",
  scene(async (world) => {
    const one = own(world, 500);
    const [other] = world.processes(1);
    await warm(world, one, other);
    const lease = await one.take("lock", { name: "c" });
    const held = await other.take("lock");
    const waiting = one.take("lock");
    await world.pass(20);
    const [place] = world.redis.places("lock:a");
    one.commands.freeze(3_600_000);
    const since = world.now();
    while (!(await isServed(one)));
    expect(world.now() - since).toBeLessThan(2_000);
    expect([lease.held, world.redis.places("lock:a")]).toEqual([true, [place]]);
    await held.unlock();
    await inTurn(world, waiting);
    expect(lease.held).toBe(true);
    await lease.unlock();
  }),
);

test(
  "the server is suspended: it is replaced after growing intervals",
  scene(async (world) => {
    const one = own(world, 250);
    await isServed(one);
    world.redis.pause(5_000);
    const opened = await busy(world, one, 5_000);
    // After 250, 500, 1 000, 2 000 ms.
    expect(opened).toBeGreaterThanOrEqual(3);
    expect(opened).toBeLessThanOrEqual(6);
    await world.pass(1_000);
    expect(await isServed(one)).toBe(true);
  }),
);

test(
  "the server is slow: it is kept, once that is known",
  scene(async (world) => {
    const one = own(world, 300);
    await isServed(one);
    world.delay(250);
    expect(await busy(world, one, 10_000)).toBeLessThanOrEqual(3);
    world.delay(0.2);
    await world.pass(1_000);
    expect(await isServed(one)).toBe(true);
  }),
);

test(
  "the server becomes slow, and then too slow: it is kept, because it has twice the time that it last took",
  scene(async (world) => {
    const one = own(world, 500);
    await isServed(one);
    world.delay(225);
    expect(await busy(world, one, 2_000)).toBe(0);
    world.delay(400);
    expect(await busy(world, one, 5_000)).toBe(0);
    world.delay(0.2);
    await world.pass(1_000);
    expect(await isServed(one)).toBe(true);
  }),
);
