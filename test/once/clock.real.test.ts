// On a real Redis; in virtual time: test/world/directed/run-once-clock.test.ts.

import { describe, expect, it } from "vitest";
import type { OnceOptions } from "../../src/index.ts";
import { Keys } from "../../src/redis/keys.ts";
import { HOUR, stageWithClock } from "../support/clock-stage.ts";
import { until } from "../support/until.ts";

// The server's clock is stepped. The end of a turn is a time of it.

const { stage, clock } = stageWithClock();

const left = (name: string): Promise<number> => stage.far.redis.pttl(new Keys("", false).ofOnce(name));

/** Puts the server's clock into the middle of a slot, so that none ends while a test runs. */
async function midSlot(): Promise<void> {
  const [seconds = 0] = await stage.far.redis.time();
  clock.jump(HOUR / 2 - ((Number(seconds) * 1_000) % HOUR));
}

/** Asks for a run that must not begin; answers what the caller is told. */
async function refused(
  options: OnceOptions,
  { locks } = stage.far,
): Promise<{ running: boolean; remaining: number }> {
  const outcome = await locks.runOnce(stage.lock.name, options, () => expect.unreachable());
  if (outcome.ran) throw new Error("it ran");
  return outcome;
}

/** Runs the job as soon as it may run; answers when the server says that it began. */
async function next(options: OnceOptions): Promise<number> {
  const run = () => stage.far.locks.runOnce(stage.lock.name, options, ({ begin }) => begin);
  return until(async () => (await run()).value, { timeout: 20_000, what: "the next run" });
}

describe("the server's clock is stepped back", () => {
  it("by a minute: a job that runs each second runs again one second later", async ({ annotate }) => {
    const every = 1_000;
    await next({ every });
    clock.jump(-60_000);
    const start = performance.now();
    const begins = [await next({ every })];
    await annotate(`the next run began ${Math.round(performance.now() - start)} ms after the step`);
    begins.push(await next({ every }));
    expect((begins[1] ?? 0) - (begins[0] ?? 0)).toBeGreaterThanOrEqual(every);
    clock.jump(60_000);
  });

  it("a finished turn is taken for one interval more, from the first call after the step", async () => {
    const { name } = stage.lock;
    await next({ every: HOUR });
    clock.jump(-24 * HOUR);
    expect(await left(name)).toBeGreaterThan(24 * HOUR);
    for (const caller of [stage.far, stage.near]) {
      const { running, remaining } = await refused({ every: HOUR }, caller);
      expect([running, remaining <= HOUR, remaining > HOUR - 60_000]).toEqual([false, true, true]);
    }
    expect(await left(name)).toBeLessThanOrEqual(HOUR);
    clock.jump(24 * HOUR);
  });

  it("by less than an interval: the job is not held up a second time when the clock has caught up", async () => {
    await next({ every: HOUR });
    clock.jump(-HOUR / 2);
    await refused({ every: HOUR });
    clock.jump(HOUR / 2 + 60_000);
    const { remaining } = await refused({ every: HOUR });
    expect(Math.abs(remaining - HOUR / 2)).toBeLessThan(2 * 60_000);
  });

  it("by less than an interval, during a run: the job is not held up a second time either", async () => {
    const { near, lock } = stage;
    const options = { every: HOUR };
    await near.locks.runOnce(lock.name, options, () => clock.jump(-HOUR / 2));
    expect((await refused(options)).remaining).toBeGreaterThan(HOUR - 60_000);
    clock.jump(HOUR / 2 + 60_000); // the clock has passed the beginning
    expect((await refused(options)).remaining).toBeLessThan(HOUR / 2);
    clock.jump(HOUR / 2);
    await next(options);
  });

  it("by less than a slot: an aligned job does not run twice in its slot", async () => {
    const { name } = stage.lock;
    const options = { every: HOUR, aligned: true };
    await midSlot();
    const begin = await next(options);
    // To the slot before.
    const step = (begin % HOUR) + 60_000;
    clock.jump(-step);
    await refused(options);
    const rest = HOUR - (begin % HOUR) + step;
    expect(Math.abs((await left(name)) - rest)).toBeLessThan(60_000);
    clock.jump(step);
  });

  it("by more than a slot: an aligned job runs again after the next slot at the latest", async () => {
    const { name } = stage.lock;
    const options = { every: HOUR, aligned: true };
    await midSlot();
    const begin = await next(options);
    clock.jump(-24 * HOUR);
    await refused(options);
    const slots = 2 * HOUR - (begin % HOUR);
    expect(Math.abs((await left(name)) - slots)).toBeLessThan(60_000);
    clock.jump(24 * HOUR);
  });

  it("a running turn stays its caller's, and its end counts", async () => {
    const { near, far, lock } = stage;
    const told: unknown[] = [];
    far.locks.on("error", (error) => told.push(error));
    const every = HOUR;
    const first = await near.locks.runOnce(lock.name, { every, lease: 600 }, async (turn) => {
      clock.jump(-24 * HOUR);
      expect(await refused({ every })).toMatchObject({ running: true });
      const renewed = new Promise<void>((resolve) => near.locks.on("renew", () => resolve()));
      await renewed;
      return turn.held;
    });
    expect(first).toEqual({ ran: true, value: true });
    expect(told).toMatchObject([{ code: "SETTING_DIFFERS", lockName: lock.name }]);
    expect(await left(lock.name)).toBeLessThanOrEqual(HOUR);
    clock.jump(24 * HOUR);
  });

  it("a run whose process has crashed keeps its turn for the step, until its key is deleted", async () => {
    const { near, far, lock, proxy } = stage;
    near.locks.on("error", () => {}); // of renewals, and of the end
    far.locks.on("error", () => {}); // of the turn that lasts longer than its options say
    let finish = () => {};
    const crashed = near.locks.runOnce(lock.name, { every: 1_000, lease: 300 }, () => {
      return new Promise<void>((resolve) => {
        finish = resolve;
      });
    });
    await until(async () => (await left(lock.name)) > 0);
    proxy.refuse(true);
    proxy.cut();
    clock.jump(-24 * HOUR);
    expect((await refused({ every: 1_000 })).remaining).toBeGreaterThan(23 * HOUR);
    // As docs/operating.md says.
    await far.redis.del(new Keys("", false).ofOnce(lock.name));
    expect((await far.locks.runOnce(lock.name, { every: 1_000 }, () => "run")).ran).toBe(true);
    finish();
    await crashed.catch(() => {});
    clock.jump(24 * HOUR);
  });
});
