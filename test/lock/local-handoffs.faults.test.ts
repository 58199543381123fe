import { describe, expect, it } from "vitest";
import { Beside } from "../support/beside.ts";
import { type CrowdReport, micros } from "../support/crowd.ts";
import { timedAwake } from "../support/stage.ts";
import { until } from "../support/until.ts";
import { crowd, turn } from "./looping-crowd.ts";

// A lock that nobody else wants is passed on inside a process without a bound. As soon as somebody
// wants it, it goes.

/** ms: sooner than any re-check, which is what would come to the rescue. */
const SOON = 1_000;

const beside = new Beside();

describe("a process whose callers loop", () => {
  it.each([["with nothing inside", { callers: 16, body: null }]] as const)(
    "%s lets another process have its turn",
    async (_, options) => {
      const waits: number[] = [];
      const { errors } = await crowd(beside, { ...options, ms: 2_500 }, async (crowd) => {
        for (let i = 0; i < 5; i++) waits.push(await turn(beside, crowd));
      });
      expect(Math.max(...waits)).toBeLessThan(SOON);
      expect(errors).toEqual([]);
    },
  );

  it("serves callers that do not announce their wait", async () => {
    let waited = Number.POSITIVE_INFINITY;
    await crowd(beside, { ms: 2_500, body: 1 }, async ({ lock }) => {
      const hold = `holdfast:client:elsewhere:1:abcdef:${"0".repeat(21)}`;
      // No number of receivers proves anything about it.
      await beside.here.redis.zadd(lock.keys.queue, micros0(), `0 3000 0 ${hold}`);
      [, waited] = await timedAwake(until(async () => (await lock.holder()) === hold));
      await beside.here.locks.lock(lock.name).forceUnlock();
    });
    expect(waited).toBeLessThan(SOON);
  });
});

describe("tokens", () => {
  const expectGrowth = ({ turns }: CrowdReport): void => {
    const tokens = turns.map((one) => one.token);
    expect(tokens.length).toBeGreaterThan(20);
    expect(tokens.findIndex((token, i) => i > 0 && token <= (tokens[i - 1] ?? 0))).toBe(-1);
  };

  it("grow over thousands of local hand-offs, and never run ahead of the server's time", async () => {
    const report = await crowd(beside, { ms: 1_000, body: null, callers: 16 }, async () => {});
    expectGrowth(report);
    // The wall clock is read in ms; and what a hold reserved when it was taken may be ahead.
    expect(report.turns.filter(({ token, at }) => token > at + offset() + 3_000)).toEqual([]);
  });
});

/** µs from the clock that processes share to the wall clock, which the server's follows. */
const offset = (): number => Date.now() * 1_000 - micros();
const micros0 = (): string => `${Date.now() * 1_000}`;
