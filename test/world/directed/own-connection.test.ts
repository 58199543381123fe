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

/** Its connections for commands. */
const commandsOf = ({ member }: SceneProcess): object[] =>
  [...member.network.wires].filter(({ end }: { end: object }) => !("subscribe" in end));

/** Its callers try without a pause for so long. Returns how many connections for commands it opened. */
async function busy(world: Scene, one: SceneProcess, ms: number): Promise<number> {
  const before = new Set(commandsOf(one));
  const opened = new Set<object>();
  const end = world.now() + ms;
  const trying = (async () => {
    while (world.now() < end) await isServed(one);
  })();
  while (world.now() < end) {
    for (const wire of commandsOf(one)) if (!before.has(wire)) opened.add(wire);
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
  "the server is suspended for long: the intervals double from `replyTimeout` up to 60 s",
  scene(async (world) => {
    const one = own(world, 5_000);
    await isServed(one);
    const since = world.now();
    world.redis.pause(300_000);
    const trying = (async () => {
      while (world.now() - since < 290_000) await isServed(one);
    })();
    const times = [since];
    const known = new Set(commandsOf(one));
    while (world.now() - since < 290_000) {
      await world.pass(100);
      const opened = commandsOf(one).filter((wire) => !known.has(wire));
      if (opened.length > 0) times.push(world.now());
      for (const wire of opened) known.add(wire);
    }
    const intervals = times.slice(1).map((at, i) => Math.round((at - (times[i] ?? 0)) / 2_500) * 2.5);
    expect(intervals).toEqual([5, 10, 20, 40, 60, 60, 60]);
    await trying;
    await world.pass(70_000);
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
