import { expect, test } from "vitest";
import { three, use } from "./caching.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { outcomeOf } from "./steps.ts";

// docs/errors.md: process warnings that come at most once a minute, and again after it.

const MINUTE = 60_000;
/** ms: a deadlock is found sooner. */
const FOUND = 15_000;

/** How many warnings of the process have these words. */
const count = ({ warnings }: SceneProcess, words: RegExp): number =>
  warnings.filter((one) => words.test(one)).length;

test(
  "an `error` event without a listener is a process warning, at most once per code and minute",
  scene(async (world) => {
    const [one] = world.processes(1);
    const leaveBehind = async (): Promise<void> => {
      const left = await one.scope(() => one.take("lock"));
      await outcomeOf(left.unlock());
      await world.pass(10);
    };
    const LEFT = /scope/;
    const UNAVAILABLE = /renew/;
    await leaveBehind();
    expect(one.warnings).toEqual([expect.stringMatching(LEFT)]);
    await world.pass(1_000);
    await leaveBehind();
    expect(one.warnings).toHaveLength(1);
    // Of another code.
    const held = await one.take("lock", { name: "b" });
    one.cutOff(20_000);
    await world.pass(25_000);
    expect([count(one, LEFT), count(one, UNAVAILABLE), one.warnings.length]).toEqual([1, 1, 2]);
    await world.pass(MINUTE - 30_000);
    await leaveBehind();
    expect(count(one, LEFT)).toBe(1);
    await world.pass(5_000);
    await leaveBehind();
    await leaveBehind();
    expect([count(one, LEFT), one.warnings.length]).toEqual([2, 3]);
    await held.unlock();
  }),
);

test(
  "callers of several deadlocks keep waiting: each has its event, and its process one warning a minute",
  scene(async (world) => {
    const both = world.processes(2);
    const told = both.map((one) => one.heard("deadlock"));
    const enough = new AbortController();
    const { signal } = enough;
    const nest = (one: SceneProcess, first: string, second: string): Promise<unknown> =>
      one.scope(async () => {
        const held = await one.take("lock", { name: first });
        await world.pass(100);
        const ended = await outcomeOf(one.take("lock", { name: second, signal }));
        await held.unlock();
        return ended?.[0];
      });
    const circle = (first: string, second: string): Promise<unknown>[] => [
      nest(both[0], first, second),
      nest(both[1], second, first),
    ];
    const events = () => told.map(({ length }) => length);
    const warnings = () => both.map((one) => count(one, /in a deadlock/));
    const all = [...circle("a", "b"), ...circle("c", "d")];
    await world.pass(FOUND);
    expect(events()).toEqual([2, 2]);
    expect(warnings()).toEqual([1, 1]);
    await world.pass(MINUTE - 2 * FOUND);
    all.push(...circle("e", "f"));
    await world.pass(FOUND);
    expect(events()).toEqual([3, 3]);
    expect(warnings()).toEqual([1, 1]);
    await world.pass(MINUTE);
    all.push(...circle("g", "h"));
    await world.pass(FOUND);
    expect(events()).toEqual([4, 4]);
    expect(warnings()).toEqual([2, 2]);
    enough.abort(Object.assign(new Error("enough"), { code: "given up" }));
    expect(await Promise.all(all)).toEqual(all.map(() => "given up"));
  }),
);

/** A caller waits for another one of its client, for two leases and more. */
async function waitForItself(world: Scene, one: SceneProcess, name: string): Promise<() => Promise<void>> {
  const held = await one.take("lock", { name });
  const waiting = one.take("lock", { name });
  await world.pass(25_000);
  return async () => {
    await held.unlock();
    await (await waiting).unlock();
  };
}

test(
  "callers that wait for their own process: at most one warning a minute",
  scene(async (world) => {
    const [one] = world.processes(1, { leaseTime: 10_000 });
    const ends = [await waitForItself(world, one, "a")];
    expect(count(one, /./)).toBe(1);
    // The next one would come 55 s after it.
    await world.pass(MINUTE - 30_000);
    ends.push(await waitForItself(world, one, "b"));
    expect(count(one, /./)).toBe(1);
    ends.push(await waitForItself(world, one, "c"));
    expect(count(one, /./)).toBe(2);
    for (const end of ends) await end();
  }),
);

test(
  "cached locks that a blocked process gives up late: at most one warning a minute",
  scene(async (world) => {
    const [one, other] = await three(world);
    const late = async (name: string): Promise<void> => {
      await use(one, { name });
      await world.pass(1);
      expect(one.client.stats().kept).toBe(1);
      const waiting = other.take("lock", { name });
      const blocking = one.does(() => one.block(1_000));
      await (await waiting).unlock();
      await blocking;
      await world.pass(10);
    };
    await late("a");
    expect(one.warnings).toHaveLength(1);
    await world.pass(MINUTE - 5_000);
    await late("b");
    expect(one.warnings).toHaveLength(1);
    await world.pass(5_000);
    await late("c");
    expect(one.warnings).toHaveLength(2);
  }),
);
