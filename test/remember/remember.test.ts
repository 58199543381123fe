import { afterAll, afterEach, describe, expect, it } from "vitest";
import type { ResultRun } from "../../src/api/remember.ts";
import { Keys } from "../../src/redis/keys.ts";
import { failure } from "../contract/observe.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { trackUnhandled } from "../support/leaks.ts";
import { until } from "../support/until.ts";

// `locks.remember`: one caller of all processes runs, and the others get its value.

const parties = new Parties();
const quiet = trackUnhandled();
afterEach(async () => {
  await parties.close();
  await quiet.assertNone();
});
afterAll(() => quiet.stop());

const HOUR = 3_600_000;
const KEEP = { keep: HOUR };
const never = (): never => expect.unreachable();

/** Two processes that call with the same name. */
async function two() {
  const [here, there] = [await parties.join(), await parties.join()];
  const name = freshName("result");
  return {
    name,
    redis: here.redis,
    keys: new Keys("", false).ofRemembered(name),
    here: here.locks,
    there: there.locks,
  };
}

/** A body that runs until it is told what to return. */
function open<T>() {
  let end = (_: T): void => {};
  const value = new Promise<T>((resolve) => {
    end = resolve;
  });
  return { body: () => value, end: (given: T) => end(given) };
}

it("one runs, those that wait and those that come later have its value, and when and by which run it was made", async () => {
  const { name, keys, redis, here, there } = await two();
  const { body, end } = open<object>();
  const first = here.remember(name, KEEP, body);
  await until(() => redis.exists(keys.lock));
  const second = there.remember(name, KEEP, never);
  await until(() => redis.exists(keys.queue));
  end({ paid: 12, at: new Date(0) });
  const made = await first;
  const value = { paid: 12, at: "1970-01-01T00:00:00.000Z" };
  expect(made).toEqual({ value, ran: true, token: expect.any(Number), at: expect.any(Number) });
  expect(Math.abs(made.at - Date.now())).toBeLessThan(60_000);
  const given = { ...made, ran: false };
  expect(await second).toEqual(given);
  expect(await there.remember(name, KEEP, never)).toEqual(given);
  const { ran: _, ...now } = made;
  expect(await there.remembered(name)).toEqual({ ...now, remaining: expect.any(Number) });
  // Each has its own copy.
  (made.value as { paid: number }).paid = 0;
  expect((await second).value).toEqual(value);
});

it("its run has a token, a signal and a time, and is over when the body has ended", async () => {
  const { name, here } = await two();
  let run: ResultRun | undefined;
  const { token } = await here.remember(name, KEEP, (given) => {
    run = given;
    expect([given.name, given.held, given.signal.aborted]).toEqual([name, true, false]);
    expect(given.remaining).toBeGreaterThan(20_000);
    given.assertHeld();
  });
  expect(run?.token).toBe(token);
  expect([run?.held, run?.remaining]).toEqual([false, 0]);
  expect(() => run?.assertHeld()).toThrow(expect.objectContaining({ code: "LOCK_RELEASED" }));
});

it.each([
  ["undefined", undefined],
  ["null", null],
  ["a text with any characters", "\u0000 % \\ ü 👋"],
  ["an empty list", []],
  ["a text of the longest size", "x".repeat(64 * 1_024 - 2)],
])("a value may be %s", async (_, value) => {
  const { name, here, there } = await two();
  expect((await here.remember(name, KEEP, () => value)).value).toEqual(value);
  expect((await there.remember(name, KEEP, never)).value).toEqual(value);
});

it("a throw is not remembered: the next caller runs", async () => {
  const { name, here, there } = await two();
  const error = new Error("no");
  expect(await failure(here.remember(name, KEEP, () => Promise.reject(error)))).toBe(error);
  expect(await there.remembered(name)).toBeNull();
  expect(await there.remember(name, KEEP, () => 2)).toMatchObject({ value: 2, ran: true });
});

const circle: { self?: unknown } = {};
circle.self = circle;

it.each([
  ["a BigInt", 1n, /no JSON form/],
  ["a circle", circle, /no JSON form/],
  ["a function", never, /no JSON form/],
  ["too long", "x".repeat(64 * 1_024 - 1), /65537 bytes of JSON, and 65536 are possible/],
])("a value that cannot be stored (%s) is an error for all: the body has run", async (_, value, why) => {
  const { name, here, there } = await two();
  const error = await failure(here.remember(name, KEEP, () => value));
  expect(error).toMatchObject({ code: "RESULT_NOT_STORABLE", lockName: name });
  expect((error as Error).message).toMatch(why);
  expect((error as { value?: unknown }).value).toBe(value);
  expect(Object.keys(error as object)).not.toContain("value");
  for (const call of [there.remember(name, KEEP, never), there.remembered(name)])
    expect(await failure(call)).toMatchObject({ code: "RESULT_NOT_STORABLE" });
  expect(await there.forget(name)).toBe(true);
  expect(await there.remember(name, KEEP, () => 2)).toMatchObject({ value: 2, ran: true });
});

it("a fingerprint: another one is refused once there is a result, the same one and none get it", async () => {
  const { name, here, there } = await two();
  await here.remember(name, { ...KEEP, fingerprint: "a" }, () => 1);
  const other = there.remember(name, { ...KEEP, fingerprint: "b" }, never);
  expect(await failure(other)).toMatchObject({ code: "FINGERPRINT_DIFFERS", lockName: name });
  for (const options of [{ ...KEEP, fingerprint: "a" }, KEEP])
    expect((await there.remember(name, options, never)).value).toBe(1);
});

it("a result without a fingerprint is refused to a call with any, also with '-', which stands for none in Redis", async () => {
  const { name, here, there } = await two();
  for (const fingerprint of [undefined, "-", "--"]) {
    await here.remember(name, { ...KEEP, fingerprint }, () => 1);
    for (const other of ["-", "--", "a"]) {
      const call = there.remember(name, { ...KEEP, fingerprint: other }, never);
      if (other === fingerprint) expect((await call).value).toBe(1);
      else expect(await failure(call)).toMatchObject({ code: "FINGERPRINT_DIFFERS" });
    }
    await here.forget(name);
  }
});

describe("while another caller runs", () => {
  async function running() {
    const stage = await two();
    const { body, end } = open<number>();
    const options = { ...KEEP, label: "invoice" };
    const first = stage.here.remember(stage.name, options, body);
    await until(() => stage.redis.exists(stage.keys.lock));
    const finish = (): Promise<unknown> => {
      end(1);
      return first;
    };
    return { ...stage, finish };
  }

  it.each([0, 20])("a call whose wait of %i ms is over says which one runs", async (wait) => {
    const { name, there, finish } = await running();
    const error = await failure(there.remember(name, { ...KEEP, wait }, never));
    expect(error).toMatchObject({ code: "LOCK_TIMEOUT", lockName: name, holder: { label: "invoice" } });
    await finish();
  });

  it("a signal ends the wait", async () => {
    const { name, there, finish, redis, keys } = await running();
    const leaving = new AbortController();
    const call = failure(there.remember(name, { ...KEEP, signal: leaving.signal }, never));
    await until(() => redis.exists(keys.queue));
    leaving.abort("enough");
    expect(await call).toBe("enough");
    await finish();
    await until(async () => (await redis.exists(keys.queue)) === 0);
  });

  it("forget() stops no run, and its result is remembered", async () => {
    const { name, there, finish } = await running();
    expect(await there.forget(name)).toBe(false);
    await finish();
    expect((await there.remember(name, KEEP, never)).value).toBe(1);
    expect(await there.forget(name)).toBe(true);
    expect(await there.remember(name, KEEP, () => 2)).toMatchObject({ value: 2, ran: true });
  });
});

it("keep: 0 is for callers that wait: the next one runs", async () => {
  const { name, here, there } = await two();
  await here.remember(name, { keep: 0 }, () => 1);
  expect(await there.remembered(name)).toBeNull();
  expect(await there.remember(name, { keep: 0 }, () => 2)).toMatchObject({ value: 2, ran: true });
});

it.each([
  [["", KEEP, never], RangeError, /name/],
  [["x", never], TypeError, /\(name, options, body\)/],
  [["x", {}, never], TypeError, /keep must be/],
  [["x", KEEP], TypeError, /third argument must be a function/],
  [["x", { keep: -1 }, never], RangeError, /keep must be/],
  [["x", { keep: 2 ** 42 + 1 }, never], RangeError, /keep must be/],
  [["x", { ...KEEP, wait: -1 }, never], RangeError, /wait must be/],
  [["x", { ...KEEP, fingerprint: "" }, never], RangeError, /fingerprint must be/],
  [["x", { ...KEEP, fingerprint: "a b" }, never], RangeError, /fingerprint must be/],
  [["x", { ...KEEP, fingerprint: 1 }, never], TypeError, /fingerprint must be/],
  [["x", { ...KEEP, ttl: 1 }, never], TypeError, /unknown option .ttl./],
])("bad arguments: %j", async (args, type, message) => {
  const { here } = await two();
  const remember = here.remember.bind(here) as (...given: unknown[]) => Promise<unknown>;
  const error = await failure(remember(...args));
  expect(error).toBeInstanceOf(type);
  expect((error as Error).message).toMatch(message);
});

it("a result in whose place another program has put no JSON is an error for its callers", async () => {
  const { name, keys, redis, here } = await two();
  await here.remember(name, KEEP, () => ({ paid: 12 }));
  await redis.setrange(keys.result, ((await redis.get(keys.result)) ?? "").lastIndexOf("{"), "?");
  const errors = [await failure(here.remember(name, KEEP, never)), await failure(here.remembered(name))];
  for (const error of errors) expect(error).toMatchObject({ code: "RESULT_NOT_STORABLE", lockName: name });
});
