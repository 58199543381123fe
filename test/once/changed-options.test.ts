import { afterAll, afterEach, describe, expect, it, onTestFinished } from "vitest";
import type { LockClient, LockError, OnceOptions } from "../../src/index.ts";
import { createTestLocks } from "../../src/tools/testing/index.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { trackUnhandled } from "../support/leaks.ts";
import { until } from "../support/until.ts";

// A new version of a program gives other options for a job than the version that ran it last, and
// while both are deployed each goes on giving its own.

const parties = new Parties();
const quiet = trackUnhandled();
afterEach(async () => {
  await parties.close();
  await quiet.assertNone();
});
afterAll(() => quiet.stop());

const HOUR = 3_600_000;

interface Versions {
  readonly before: LockClient;
  readonly after: LockClient;
}

const STAGES: readonly (readonly [string, () => Promise<Versions>])[] = [
  ["on Redis", async () => ({ before: (await parties.join()).locks, after: (await parties.join()).locks })],
  [
    "in memory",
    async () => {
      const before = createTestLocks();
      const after = before.test.another();
      onTestFinished(async () => void (await Promise.all([before.close(), after.close()])));
      return { before, after };
    },
  ],
];

/** What a call is told that must not run. */
async function refused(locks: LockClient, name: string, options: OnceOptions) {
  const outcome = await locks.runOnce(name, options, () => expect.unreachable());
  if (outcome.ran) throw new Error("it ran");
  return outcome;
}

/** What a client reports, by code. */
function reports(locks: LockClient): LockError[] {
  const all: LockError[] = [];
  locks.on("error", (error) => all.push(error));
  return all;
}

describe.each(STAGES)("%s", (_, versions) => {
  it("a shorter interval counts from the last run on, also one that an older version began", async () => {
    const { before, after } = await versions();
    const name = freshName("report");
    const first = await before.runOnce(name, { every: HOUR }, ({ begin }) => begin);
    expect((await refused(after, name, { every: HOUR / 2 })).remaining).toBeLessThanOrEqual(HOUR / 2);
    const every = 300;
    const next = await until(async () => (await after.runOnce(name, { every }, ({ begin }) => begin)).value, {
      timeout: 10_000,
      what: "a run by the new interval",
    });
    expect(next - (first.value ?? 0)).toBeGreaterThanOrEqual(every);
  });

  it("a longer interval counts from the last run on, also after the end of the shorter one", async () => {
    const { before, after } = await versions();
    const every = 500;
    /** The new version asks within the old interval, as far as this process knows; else once more. */
    const asked = async () => {
      const name = freshName("report");
      let ends = 0;
      await before.runOnce(name, { every }, () => {
        ends = performance.now() + every;
      });
      const first = await after.runOnce(name, { every: HOUR }, () => {});
      const isLate = first.ran && performance.now() >= ends;
      return isLate ? null : { name, ends, first };
    };
    const { name, ends, first } = await until(asked, { what: "a call within the old interval" });
    expect(first).toMatchObject({ ran: false });
    expect(first.ran || first.remaining).toBeGreaterThan(HOUR - 60_000);
    await until(() => performance.now() > ends + 50, { what: "the end of the old interval" });
    const { running, remaining } = await refused(after, name, { every: HOUR });
    expect([running, remaining > HOUR - 60_000]).toEqual([false, true]);
  });

  it("side by side, each version has its own interval counted, whatever the other one asks", async () => {
    const { before, after } = await versions();
    const name = freshName("report");
    const told = [before, after].map(reports);
    await before.runOnce(name, { every: HOUR }, () => {});
    for (let call = 0; call < 20; call++) {
      const day = await refused(after, name, { every: 24 * HOUR });
      const hour = await refused(before, name, { every: HOUR });
      expect(Math.abs(day.remaining - 24 * HOUR)).toBeLessThan(60_000);
      expect(Math.abs(hour.remaining - HOUR)).toBeLessThan(60_000);
    }
    expect(told).toEqual([[], []]);
  });

  it("slots in place of intervals count from the next slot on", async () => {
    const { before, after } = await versions();
    const name = freshName("report");
    const begin = (await before.runOnce(name, { every: 10 * HOUR }, (turn) => turn.begin)).value ?? 0;
    const { remaining } = await refused(after, name, { every: 24 * HOUR, aligned: true });
    expect(Math.abs(remaining - (24 * HOUR - (begin % (24 * HOUR))))).toBeLessThan(60_000);
  });

  it("a run under way keeps its turn by its own options, which a version with others reports once", async () => {
    const { before, after } = await versions();
    const name = freshName("report");
    const told = [before, after].map(reports);
    let finish = (): void => {};
    const run = { ended: Promise.resolve<unknown>(null) };
    await new Promise<void>((began) => {
      run.ended = before.runOnce(name, { every: 24 * HOUR, onCrash: "keep" }, () => {
        began();
        return new Promise<void>((resolve) => {
          finish = resolve;
        });
      });
    });
    for (let call = 0; call < 5; call++)
      expect(await refused(after, name, { every: HOUR })).toMatchObject({ running: true });
    await until(() => told[1]?.[0], { what: "the report" });
    expect(told).toMatchObject([[], [{ code: "SETTING_DIFFERS", lockName: name }]]);
    finish();
    expect(await run.ended).toEqual({ ran: true, value: undefined });
    // When it has ended, the interval of each version counts.
    expect((await refused(after, name, { every: HOUR })).remaining).toBeLessThanOrEqual(HOUR);
  });
});
