import { describe, expect, test } from "vitest";
import { SPIN_MAX } from "../../../src/defaults.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { outcomeOf } from "./steps.ts";

// How callers of spinLock wait: after pauses of 1, 2, 4 … 128 ms, each by up to a half shorter.

const KEY = "spin:a";
const SPREAD = 0.5;
const ROUND_TRIP = 1;

/** Another program holds it. */
const held = ({ redis }: Scene): void => redis.overwrite(KEY, "other data");
const free = ({ redis }: Scene): unknown => redis.dropKey(KEY);
const timeout = (one: SceneProcess, wait: number) => outcomeOf(one.take("spinLock", { wait }));

/** When its tries are sent, in ms of the scene, until `stop`. */
function watchTries({ pass, now }: Scene, one: SceneProcess) {
  const tries: number[] = [];
  let isOver = false;
  let { sent } = one;
  const watched = (async () => {
    while (!isOver) {
      for (; sent < one.sent; sent++) tries.push(now());
      await pass(0.25);
    }
  })();
  return {
    tries,
    stop: async (): Promise<void> => {
      isOver = true;
      await watched;
    },
  };
}

const pausesOf = (tries: readonly number[]): number[] => tries.slice(1).map((at, i) => at - (tries[i] ?? 0));

/** Pauses from the first one on, from 1 ms up to the longest. */
function expectGrowing(pauses: readonly number[]): void {
  for (const [i, pause] of pauses.entries()) {
    const most = Math.min(SPIN_MAX, 2 ** i);
    expect(pause).toBeGreaterThan(most * (1 - SPREAD) - 0.5);
    expect(pause).toBeLessThanOrEqual(most + ROUND_TRIP);
  }
}

/** Connections that are not for commands. */
const subscribers = ({ member }: SceneProcess): number =>
  [...member.network.wires].filter(({ end }) => "subscribe" in end).length;

test(
  "tries after 1, 2, 4 … 128 ms, and subscribes to nothing",
  scene(async (world) => {
    const [one] = world.processes(1);
    held(world);
    const { tries, stop } = watchTries(world, one);
    expect(await timeout(one, 3_000)).toEqual(["LOCK_TIMEOUT", undefined]);
    await stop();
    const pauses = pausesOf(tries);
    // The end of the wait cuts the last ones.
    expectGrowing(pauses.slice(0, -2));
    expect(pauses.length).toBeGreaterThan(20);
    expect(subscribers(one)).toBe(0);
    free(world);
  }),
);

test.each([150, 283, 410, 555, 700])("tries once more at the end of a wait of %i ms", (wait) =>
  scene(async (world) => {
    const [one] = world.processes(1);
    held(world);
    const { tries, stop } = watchTries(world, one);
    const since = world.now();
    const { took } = await world.timed(timeout(one, wait));
    await stop();
    expect(took).toBeLessThan(wait + 2);
    expect((tries.at(-1) ?? 0) - since).toBeGreaterThan(wait - 15);
    free(world);
  })(),
);

test(
  "spreads its pauses, so that two processes do not try in step",
  scene(async (world) => {
    const both = world.processes(2);
    held(world);
    const watches = both.map((one) => watchTries(world, one));
    await Promise.all(both.map((one) => timeout(one, 2_500)));
    for (const { tries, stop } of watches) {
      await stop();
      const pauses = pausesOf(tries).slice(8, -2);
      expect(Math.max(...pauses) - Math.min(...pauses)).toBeGreaterThan(16);
    }
    free(world);
  }),
);

test.each(["after the last try", "during the last try"] as const)(
  "begins anew with short pauses for a caller that comes when none is waiting, %s of the one before",
  (when) =>
    scene(async (world) => {
      const [one] = world.processes(1);
      held(world);
      const first = timeout(one, 400);
      await world.pass(395);
      if (when === "during the last try") one.commands.freezeReplies(20);
      else await first;
      await world.pass(6);
      const { tries, stop } = watchTries(world, one);
      const second = timeout(one, 400);
      expect([await first, await second]).toEqual([
        ["LOCK_TIMEOUT", undefined],
        ["LOCK_TIMEOUT", undefined],
      ]);
      await stop();
      expect(pausesOf(tries).filter((pause) => pause < 20).length).toBeGreaterThanOrEqual(3);
      free(world);
    })(),
);

test(
  "begins anew with short pauses after a turn",
  scene(async (world) => {
    const [one] = world.processes(1);
    held(world);
    const [first, second] = [one.take("spinLock"), one.take("spinLock")];
    await world.pass(1_000);
    free(world);
    const lease = await first;
    await world.pass(600);
    await lease.unlock();
    // The process rests for a while after a turn.
    held(world);
    const { tries, stop } = watchTries(world, one);
    await world.pass(700);
    await stop();
    expect(pausesOf(tries).filter((pause) => pause < 20).length).toBeGreaterThanOrEqual(3);
    free(world);
    await (await second).unlock();
  }),
);

test(
  "has one loop of tries for a hundred callers of one process",
  scene(async (world) => {
    const [one] = world.processes(1);
    held(world);
    const before = one.sent;
    await Promise.all(Array.from({ length: 100 }, () => timeout(one, 500)));
    expect(one.sent - before).toBeLessThanOrEqual(17);
    free(world);
  }),
);

test.each([0, 3])("gives a caller with %i ms the current state, not that of a pause ago", (wait) =>
  scene(async (world) => {
    const [one] = world.processes(1);
    const first = await one.take("spinLock");
    const waiting = one.take("spinLock");
    await world.pass(600);
    await first.unlock();
    const { redis } = world;
    expect(redis.remaining(KEY)).toBe(0);
    expect(await outcomeOf(one.take("spinLock", { wait }))).toEqual(["LOCK_TIMEOUT", undefined]);
    // The one that waited has it.
    expect(redis.remaining(KEY)).toBeGreaterThan(0);
    await (await waiting).unlock();
  })(),
);

test(
  "tries once more for a caller that has less time than the pause",
  scene(async (world) => {
    const [one] = world.processes(1);
    held(world);
    const enough = new AbortController();
    const waiting = one.take("spinLock", { signal: enough.signal }).catch((reason: unknown) => reason);
    await world.pass(1_000);
    const { sent } = one;
    await world.until(() => one.sent > sent);
    const before = one.sent;
    expect(await timeout(one, 40)).toEqual(["LOCK_TIMEOUT", undefined]);
    expect(one.sent).toBeGreaterThan(before);
    enough.abort("enough");
    expect(await waiting).toBe("enough");
    free(world);
  }),
);

test(
  "stops trying when the last caller leaves",
  scene(async (world) => {
    const [one] = world.processes(1);
    held(world);
    const enough = new AbortController();
    const waiting = one.take("spinLock", { signal: enough.signal }).catch((reason: unknown) => reason);
    await world.pass(500);
    enough.abort("enough");
    expect(await waiting).toBe("enough");
    const before = one.sent;
    await world.pass(10 * SPIN_MAX);
    expect(one.sent).toBe(before);
    free(world);
  }),
);

test(
  "hands the lock off inside the process, and subscribes to nothing for that",
  scene(async (world) => {
    const [one] = world.processes(1);
    const first = await one.take("spinLock");
    const waiting = Array.from({ length: 320 }, async () => (await one.take("spinLock")).unlock());
    await world.pass(10);
    const before = one.sent;
    const { took } = await world.timed(Promise.all([first.unlock(), ...waiting]));
    // 16 hand-offs, unless they take 25 ms.
    const turns = 320 / 16 + Math.ceil(took / 25);
    expect(one.sent - before).toBeLessThanOrEqual(2 * turns + 20);
    expect(subscribers(one)).toBe(0);
  }),
);

describe("while a process leaves it alone after its turn", () => {
  /** A turn of so many ms has just ended, and a caller here waits for the next one. */
  async function rest(world: Scene, one: SceneProcess, ms: number) {
    const first = await one.take("spinLock");
    const waiting = one.take("spinLock");
    await world.pass(ms);
    await first.unlock();
    return waiting;
  }

  test(
    "a caller here has it at most 128 ms later",
    scene(async (world) => {
      const [one] = world.processes(1);
      for (let i = 0; i < 10; i++) {
        const { result, took } = await world.timed(rest(world, one, 1_000));
        expect(took - 1_000).toBeLessThanOrEqual(SPIN_MAX + 2 * ROUND_TRIP);
        await result.unlock();
      }
    }),
  );

  test(
    "the wait of a caller here ends: it is answered after that, and has the lock if no other took it",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const before = await other.take("spinLock");
      const first = one.take("spinLock");
      const second = one.take("spinLock", { wait: 1_020 });
      await world.pass(200);
      await before.unlock();
      const lease = await first;
      await world.pass(1_000 - world.now());
      await lease.unlock();
      await world.pass(25);
      expect(world.redis.remaining(KEY)).toBe(0);
      await (await second).unlock();
    }),
  );

  test(
    "tryLock() is answered, although Redis must answer sooner than after that",
    scene(async (world) => {
      const [one] = world.processes(1, { replyTimeout: 30 });
      const waiting = rest(world, one, 1_000);
      await world.pass(1_001);
      expect(await one.tryTake("spinLock")).toBeNull();
      await (await waiting).unlock();
    }),
  );
});

test.each([
  ["no call that does not wait", 0],
  ["tryLock() every millisecond", 1],
  ["tryLock() every 5 ms", 5],
] as const)(
  "a process that wants it all the time leaves it alone after its turn, beside %s: another one gets it soon",
  (_, ms) =>
    scene(async (world) => {
      const [mine, other] = world.processes(2);
      let isOver = false;
      const again = async (): Promise<void> => {
        while (!isOver) {
          const lease = await mine.take("spinLock");
          await mine.sleep(10);
          await lease.unlock();
        }
      };
      const tries = async (): Promise<void> => {
        while (!isOver && ms > 0) {
          await (await mine.tryTake("spinLock"))?.unlock();
          await mine.sleep(ms);
        }
      };
      const callers = [again(), again(), again(), tries()];
      await world.pass(500);
      let waited = 0;
      for (let i = 0; i < 20; i++) {
        const { result, took } = await world.timed(other.take("spinLock"));
        waited += took;
        await result.unlock();
        await world.pass(37);
      }
      isOver = true;
      await Promise.all(callers);
      // A turn takes 30 ms.
      expect(waited / 20).toBeLessThan(100);
    })(),
);
