// On a real Redis; in virtual time: test/world/directed/crowds.test.ts.

import { describe, expect, it } from "vitest";
import { Actor } from "../support/actor.ts";
import { Beside } from "../support/beside.ts";
import { type CrowdReport, micros } from "../support/crowd.ts";
import { STAY_FRESH, STAY_WINDOW } from "../support/stays.ts";
import { until } from "../support/until.ts";
import { crowd, turn } from "./looping-crowd.ts";

// A lock that nobody else wants is passed on inside a process without a bound. As soon as somebody
// wants it, it goes.

/** ms: sooner than any re-check, which is what would come to the rescue. */
const SOON = 1_000;
/** ms that a busy machine may hold up a process between a look at its clock and the next one. */
const HELD_UP = 200;

const beside = new Beside();

describe("a process whose callers loop", () => {
  it.each([
    ["for a turn of the event loop each", { callers: 16, body: 0 }],
    ["for 150 ms each, so that the lock is claimed", { callers: 4, body: 150 }],
    ["with a lease of their own", { callers: 8, body: 1, options: { lease: 5_000 } }],
  ] as const)("%s lets another process have its turn", async (_, options) => {
    const waits: number[] = [];
    const { errors } = await crowd(beside, { ...options, ms: 2_500 }, async (crowd) => {
      for (let i = 0; i < 5; i++) waits.push(await turn(beside, crowd));
    });
    expect(Math.max(...waits)).toBeLessThan(SOON);
    expect(errors).toEqual([]);
  });

  it.each([
    ["with nothing inside", { callers: 16, body: null }],
    ["for 150 ms each", { callers: 4, body: 150 }],
  ] as const)("%s, and does not receive that the lock is wanted, does so too", async (_, options) => {
    let waited = Number.POSITIVE_INFINITY;
    await crowd(beside, { ...options, ms: 3_000 }, async (crowd) => {
      crowd.proxy.freeze("subscribers");
      waited = await turn(beside, crowd);
    });
    expect(waited).toBeLessThan(SOON);
  });

  it("serves the second caller after the first one died before it was announced", async () => {
    let waited = Number.POSITIVE_INFINITY;
    await crowd(beside, { ms: 4_000, body: 150, callers: 4 }, async (crowd) => {
      const { lock, proxy } = crowd;
      const first = await Actor.start({ url: beside.server.url });
      proxy.freeze("subscribers");
      const dying = first.call("acquire", "lock", lock.name, 60_000).catch(() => null);
      const second = turn(beside, crowd);
      first.kill();
      await Promise.all([dying, first.exit]);
      waited = await second;
    });
    expect(waited).toBeLessThan(SOON);
  });
});

describe("a lock whose key is lost during local hand-offs", () => {
  it.each(["DEL", "FLUSHALL"] as const)("%s: starts no turn beside the next holder for long", async (how) => {
    let deleted = 0;
    let token = 0;
    let until_ = 0;
    const { turns, errors } = await crowd(beside, { ms: 2_500, body: 3, callers: 16 }, async ({ lock }) => {
      if (how === "DEL") await beside.here.redis.del(lock.keys.lock);
      else await beside.here.redis.flushall();
      deleted = micros();
      const lease = await beside.here.locks.lock(lock.name).lock();
      token = lease.token;
      await until(() => micros() > deleted + 900_000);
      until_ = micros();
      await lease.unlock();
    });
    const late = turns.filter(({ at }) => at > deleted + (STAY_FRESH + HELD_UP) * 1_000 && at < until_);
    expect(late).toEqual([]);
    expect(turns.filter((turn) => turn.at < until_ && turn.token > token)).toEqual([]);
    expect(errors.every((error) => /^LOCK_LOST (gone|taken)$/.test(error))).toBe(true);
  });
});

describe("tokens", () => {
  const expectGrowth = ({ turns }: CrowdReport): void => {
    const tokens = turns.map((one) => one.token);
    expect(tokens.length).toBeGreaterThan(20);
    expect(tokens.findIndex((token, i) => i > 0 && token <= (tokens[i - 1] ?? 0))).toBe(-1);
  };

  it.each([2_000, 3_600_000])("grow if the last one is %i ms ahead of the server's time", async (ahead) => {
    await beside.here.redis.set("holdfast:clock", `${(Date.now() + ahead) * 1_000}`);
    try {
      const report = await crowd(beside, { ms: 1_500, body: 0, callers: 16 }, async () => {});
      expectGrowth(report);
      const gaps = report.turns.map(({ at }, i) => at - (report.turns[i - 1]?.at ?? at));
      expect(gaps.reduce((most, gap) => Math.max(most, gap), 0)).toBeLessThan(SOON * 1_000);
    } finally {
      await beside.here.redis.del("holdfast:clock");
    }
  });
});

describe("the rest of a lease at a local hand-off", () => {
  it.each([
    ["an explicit one below the window", { lease: 2_000 }, 0.9 * 2_000],
    ["an explicit one above the window", { lease: 5_000 }, 0.9 * 5_000],
    ["the watchdog's", {}, STAY_WINDOW / 2],
  ] as const)("is long enough: %s", async (_, options, least) => {
    const { turns, errors } = await crowd(
      beside,
      { ms: 2_000, body: 5, callers: 4, options },
      async () => {},
    );
    const short = turns.filter(({ left }) => left < least - HELD_UP / 2);
    expect(short).toEqual([]);
    expect(errors).toEqual([]);
  });
});
