import { describe, expect, test } from "vitest";
import type { OnceOptions, OnceResult, Turn } from "../../../src/index.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";

// The server's clock is stepped. The end of a turn of `runOnce` is a time of it.

const HOUR = 3_600_000;
const MINUTE = 60_000;

const run = <T>(one: SceneProcess, options: OnceOptions, body: (turn: Turn) => T | PromiseLike<T>) =>
  one.does((): Promise<OnceResult<T>> => one.client.runOnce("job", options, body));

/** A run that must begin. Returns the server's time of its beginning. */
async function begins(one: SceneProcess, options: OnceOptions): Promise<number> {
  const { value } = await run(one, options, ({ begin }) => begin);
  if (value === undefined) throw new Error("it did not run");
  return value;
}

/** A run that must not begin. Returns what its caller is told. */
async function refused(one: SceneProcess, options: OnceOptions) {
  const outcome = await run(one, options, () => expect.unreachable());
  if (outcome.ran) throw new Error("it ran");
  return outcome;
}

/** Puts the server's clock into the middle of an hour. */
async function midHour({ redis }: Scene, one: SceneProcess): Promise<void> {
  const { value = 0 } = await one.client.runOnce("another job", { every: 10 }, ({ begin }) => begin);
  redis.setBack((value % HOUR) - HOUR / 2);
}

describe("the server's clock is set back", () => {
  test(
    "by a minute: a job of each second runs again one second later, and so on",
    scene(async (world) => {
      const [one] = world.processes(1);
      const options = { every: 1_000 };
      await begins(one, options);
      world.redis.setBack(MINUTE);
      let last = 0;
      for (let i = 0; i < 3; i++) {
        const { remaining } = await refused(one, options);
        expect(remaining).toBeGreaterThan(990);
        expect(remaining).toBeLessThanOrEqual(1_000);
        await world.pass(remaining);
        const begin = await begins(one, options);
        if (last > 0) expect(begin - last).toBeGreaterThanOrEqual(1_000);
        last = begin;
      }
    }),
  );

  test(
    "a finished turn is taken for one interval more, from the first call after the step",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const options = { every: HOUR };
      await begins(one, options);
      world.redis.setBack(24 * HOUR);
      await world.pass(MINUTE);
      const first = await refused(one, options);
      expect(first.running).toBe(false);
      expect(Math.abs(first.remaining - HOUR)).toBeLessThan(10);
      await world.pass(MINUTE);
      const { remaining } = await refused(other, options);
      expect(Math.abs(remaining - HOUR + MINUTE)).toBeLessThan(10);
    }),
  );

  test.each(["after a run", "during a run"] as const)(
    "by less than an interval, %s: the job is not delayed a second time when the clock has caught up",
    (when) =>
      scene(async (world) => {
        const [one, other] = world.processes(2);
        const options = { every: HOUR };
        const isDuring = when === "during a run";
        await run(one, options, () => isDuring && world.redis.setBack(HOUR / 2));
        if (!isDuring) world.redis.setBack(HOUR / 2);
        expect(Math.abs((await refused(other, options)).remaining - HOUR)).toBeLessThan(10);
        world.redis.setBack(-HOUR / 2 - MINUTE);
        const { remaining } = await refused(other, options);
        expect(Math.abs(remaining - HOUR / 2 + MINUTE)).toBeLessThan(MINUTE + 10);
        world.redis.setBack(-HOUR / 2);
        await begins(other, options);
      })(),
  );

  test(
    "by less than a slot: an aligned job does not run twice in its slot",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const options = { every: HOUR, aligned: true };
      await midHour(world, one);
      const begin = await begins(one, options);
      // To the slot before.
      const step = (begin % HOUR) + MINUTE;
      world.redis.setBack(step);
      const { remaining } = await refused(other, options);
      expect(Math.abs(remaining - (HOUR - (begin % HOUR) + step))).toBeLessThan(10);
    }),
  );

  test(
    "by more than a slot: an aligned job runs again after the next slot at the latest",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const options = { every: HOUR, aligned: true };
      await midHour(world, one);
      const begin = await begins(one, options);
      world.redis.setBack(24 * HOUR);
      const { remaining } = await refused(other, options);
      expect(Math.abs(remaining - (2 * HOUR - (begin % HOUR)))).toBeLessThan(10);
      await world.pass(remaining);
      await begins(other, options);
    }),
  );

  test(
    "during a run: the turn stays its caller's, is renewed, and its end counts",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const options = { every: HOUR, lease: 10_000 };
      const told = other.heard("error");
      const renewals = one.heard("renew");
      const outcome = await run(one, options, async (turn) => {
        world.redis.setBack(24 * HOUR);
        expect(await refused(other, options)).toMatchObject({ running: true });
        await one.sleep(30_000);
        return turn.held;
      });
      expect([outcome, renewals.length > 0]).toEqual([{ ran: true, value: true }, true]);
      expect(world.redis.remaining("holdfast:once:{job}")).toBeLessThanOrEqual(HOUR);
      expect(told).toMatchObject([{ code: "SETTING_DIFFERS", lockName: "job" }]);
      const { running, remaining } = await refused(other, options);
      expect([running, remaining <= HOUR]).toEqual([false, true]);
    }),
  );

  test(
    "and its process crashes: the turn is taken for the step, until its key is deleted",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const options = { every: 1_000, lease: 10_000 };
      void run(one, options, () => one.sleep(HOUR));
      await world.pass(100);
      one.crash();
      world.redis.setBack(24 * HOUR);
      await world.pass(MINUTE);
      expect((await refused(other, options)).remaining).toBeGreaterThan(23 * HOUR);
      world.redis.drop("job");
      await begins(other, options);
      // The clock is right again.
      world.redis.setBack(-24 * HOUR);
    }),
  );
});
