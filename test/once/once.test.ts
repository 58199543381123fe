import { afterAll, afterEach, expect, it } from "vitest";
import type { Turn } from "../../src/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { Keys } from "../../src/redis/keys.ts";
import { failure } from "../contract/observe.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { trackUnhandled } from "../support/leaks.ts";
import { until } from "../support/until.ts";

// `locks.once`: at most once per interval over all processes.

const parties = new Parties();
const quiet = trackUnhandled();
afterEach(async () => {
  await parties.close();
  await quiet.assertNone();
});
afterAll(() => quiet.stop());

const HOUR = 3_600_000;
const keyOf = (name: string): string => new Keys("", false).ofOnce(name);

/** Two processes that call with the same name, and what Redis has of it. */
async function two() {
  const [here, there] = [await parties.join(), await parties.join()];
  const name = freshName("report");
  const { redis } = here;
  return { name, key: keyOf(name), redis, here: here.locks, there: there.locks };
}

it("one caller runs the body, and the others learn that it runs, and then that it ran", async () => {
  const { name, redis, key, here, there } = await two();
  let finish = (_: string) => {};
  const body = () =>
    new Promise<string>((resolve) => {
      finish = resolve;
    });
  const first = here.runOnce(name, { every: HOUR }, body);
  await until(() => redis.exists(key));
  const meanwhile = await there.runOnce(name, { every: HOUR }, () => expect.unreachable());
  expect(meanwhile).toMatchObject({ ran: false, running: true });
  finish("sent");
  expect(await first).toEqual({ ran: true, value: "sent" });
  for (const locks of [here, there]) {
    const { ran, ...later } = await locks.runOnce(name, { every: HOUR }, () => expect.unreachable());
    expect([ran, later]).toEqual([false, { running: false, remaining: expect.any(Number) }]);
    expect("remaining" in later && later.remaining).toBeGreaterThan(HOUR - 60_000);
  }
});

it("the body receives the time of its beginning, and holds its turn until it has ended", async () => {
  const { name, redis, key, here } = await two();
  let turn: Turn | undefined;
  await here.runOnce(name, { every: HOUR }, async (given) => {
    turn = given;
    const [seconds = 0] = await redis.time();
    expect(Math.abs(given.begin - Number(seconds) * 1_000)).toBeLessThan(5_000);
    expect((await redis.get(key))?.slice(0, 16)).toBe(`1r ${given.begin}`);
    expect([given.held, given.signal.aborted, given.name]).toEqual([true, false, name]);
    given.assertHeld();
  });
  expect(turn?.held).toBe(false);
  expect(() => turn?.assertHeld()).toThrow(expect.objectContaining({ code: "LOCK_RELEASED" }));
  expect(turn?.signal.aborted).toBe(false);
});

it("aligned, a run counts for its slot of the server's clock", async () => {
  const { name, redis, key, here } = await two();
  let begin = 0;
  await here.runOnce(name, { every: HOUR, aligned: true }, (turn) => {
    ({ begin } = turn);
  });
  const end = Date.now() + (await redis.pttl(key));
  expect(Math.abs(end - (Math.floor(begin / HOUR) + 1) * HOUR)).toBeLessThan(2_000);
});

it("runOnce refuses unknown options, and still adds listeners", async () => {
  const { name, here } = await two();
  const once = here.runOnce.bind(here) as (...args: unknown[]) => Promise<unknown>;
  const body = () => {};
  // Where drafts of the API had it.
  const listen = here.once.bind(here) as (...args: unknown[]) => unknown;
  expect(() => listen(name, { every: 10 }, body)).toThrow(
    /is `locks.runOnce\(name, \{ every \}, body\)` now/,
  );
  expect(() => listen(name, body)).toThrow(/event must be one of/);
  expect(await failure(once(name, { every: 10 }))).toMatchObject({
    message: expect.stringMatching(/third argument must be a function, received undefined/),
  });
  for (const swapped of [name, "error"])
    expect(await failure(once(swapped, body, { every: 10 }))).toMatchObject({
      name: "TypeError",
      message: expect.stringMatching(/runOnce takes \(name, options, body\), in this order/),
    });
  expect(await failure(once(name, {}, body))).toMatchObject({
    message: expect.stringMatching(/every must be a whole number of milliseconds from 10/),
  });
  expect(await failure(once(name, { every: 1 }, body))).toBeInstanceOf(RangeError);
  expect(await failure(once(name, { every: 10, onCrash: "stop" }, body))).toMatchObject({
    message: expect.stringMatching(/"again" or "keep"/),
  });
  expect(await failure(once(name, { every: 10, wait: 5 }, body))).toMatchObject({
    message: expect.stringMatching(/unknown option 'wait'/),
  });
  expect(await failure(once("", { every: 10 }, body))).toMatchObject({
    message: expect.stringMatching(/Cannot run anything once per interval: name/),
  });
  let told = 0;
  expect(here.once("acquire", () => told++)).toBe(here);
  for (let i = 0; i < 2; i++) await (await here.lock(freshName()).lock()).unlock();
  expect(told).toBe(1);
});

it("runOnce is refused on several masters, with the reason", async () => {
  const { redis } = await parties.join();
  const others = [await parties.join(), await parties.join()].map((party) => party.redis);
  const locks = createQuorumClient([redis, ...others]);
  const { runOnce } = locks as unknown as { runOnce(...args: unknown[]): unknown };
  expect(() => runOnce("report", { every: HOUR }, () => {})).toThrow(/by the clock of one server/);
  await locks.close();
});
