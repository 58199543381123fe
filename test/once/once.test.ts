import { afterAll, afterEach, describe, expect, it } from "vitest";
import { LockLostError, type OnceOptions, type Turn } from "../../src/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { Keys } from "../../src/redis/keys.ts";
import { failure } from "../contract/observe.ts";
import { Actor } from "../support/actor.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
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

it("a body that takes longer than the interval is renewed, and after its end the next one may begin", async () => {
  const { name, redis, key, here, there } = await two();
  const every = 30;
  const begins: number[] = [];
  let renewals = 0;
  here.on("renew", ({ kind }) => {
    if (kind === "once") renewals++;
  });
  const long = here.runOnce(name, { every, lease: 1_200 }, async (turn) => {
    begins.push(turn.begin);
    await until(() => renewals > 0);
    expect(await redis.pttl(key)).toBeGreaterThan(0);
    expect(turn.held).toBe(true);
  });
  await until(() => redis.exists(key));
  expect((await there.runOnce(name, { every }, () => expect.unreachable())).ran).toBe(false);
  await long;
  expect((await there.runOnce(name, { every }, (turn) => void begins.push(turn.begin))).ran).toBe(true);
  expect(begins[1]).toBeGreaterThan((begins[0] ?? 0) + every);
});

describe("a body that throws", () => {
  const broken = new Error("no paper");
  const run = (options: Partial<OnceOptions>) => async () => {
    const { name, redis, key, here, there } = await two();
    const given = { every: HOUR, ...options };
    expect(await failure(here.runOnce(name, given, () => Promise.reject(broken)))).toBe(broken);
    return { value: (await redis.get(key)) ?? "", left: await redis.pttl(key), there, name, given };
  };

  it("leaves the turn to its lease, after which another process runs it", async () => {
    const { value, left, there, name, given } = await run({ lease: 200 })();
    expect(value).toMatch(/^1r /);
    expect(left).toBeLessThanOrEqual(200);
    await until(async () => (await there.runOnce(name, given, () => "again")).ran);
  });

  it("keeps it taken if asked to", async () => {
    const { value, left } = await run({ lease: 200, onCrash: "keep" })();
    expect(value).toMatch(/^1d /);
    expect(left).toBeGreaterThan(HOUR - 60_000);
  });

  it("keeps it no longer than to the end of the interval, however long the lease", async () => {
    const { left } = await run({ every: 300, lease: 30_000 })();
    expect(left).toBeLessThanOrEqual(301);
  });
});

it("a turn that is gone aborts the body's signal, and the call rejects with the loss", async () => {
  const { name, redis, key, here } = await two();
  const losses: unknown[] = [];
  here.on("lost", (event) => losses.push(event));
  const stopped = new Error("stopped");
  const call = here.runOnce(name, { every: HOUR, lease: 1_500 }, async ({ signal }) => {
    await redis.del(key);
    await until(() => signal.aborted);
    expect(signal.reason).toBeInstanceOf(LockLostError);
    throw stopped;
  });
  expect(await failure(call)).toMatchObject({
    code: "LOCK_LOST",
    reason: "gone",
    lockName: name,
    cause: stopped,
  });
  expect(losses).toMatchObject([{ kind: "once", name }]);
  expect(await redis.exists(key)).toBe(0);
});

it("a turn that another caller has by the end is a loss too", async () => {
  const { name, redis, key, here } = await two();
  const call = here.runOnce(name, { every: HOUR }, async () => {
    await redis.set(key, "1r 1700000000000000 somebody", "PX", 10_000);
  });
  expect(await failure(call)).toMatchObject({ code: "LOCK_LOST", reason: "taken" });
  expect(await redis.get(key)).toBe("1r 1700000000000000 somebody");
});

it("processes that call all the time run once in each interval", async () => {
  const name = freshName("often");
  const actors = await Promise.all([1, 2].map(() => Actor.start({ url: testUrl() })));
  const [every, time] = [200, 2_000];
  const lists = await Promise.all(actors.map((actor) => actor.call("callOnce", name, { every }, 10, time)));
  await Promise.all(actors.map((actor) => actor.end()));
  const begins = lists.flat().sort((one, other) => one - other);
  const gaps = begins.slice(1).map((begin, i) => begin - (begins[i] ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(every);
  expect(begins.length).toBeLessThanOrEqual(time / every + 1);
  // A machine that stands still for some intervals misses them, and no more.
  expect(begins.length).toBeGreaterThan(time / every / 2);
});

it("a run emits events of its client", async () => {
  const { name, here, there } = await two();
  const events: unknown[] = [];
  for (const locks of [here, there]) {
    locks.on("acquire", ({ kind, token, kept }) => events.push(["acquire", kind, Number(token) > 0, kept]));
    locks.on("release", ({ kind, heldFor }) => events.push(["release", kind, heldFor >= 0]));
    locks.on("giveup", ({ kind, why }) => events.push(["giveup", kind, why]));
  }
  await here.runOnce(name, { every: HOUR }, () => {});
  await there.runOnce(name, { every: HOUR }, () => {});
  expect(events).toEqual([
    ["acquire", "once", true, false],
    ["release", "once", true],
    ["giveup", "once", "busy"],
  ]);
});

it("close() waits for bodies that run, and refuses later calls", async () => {
  const { name, here, redis, key } = await two();
  let hasEnded = false;
  let finish = () => {};
  const call = here.runOnce(
    name,
    { every: HOUR },
    () =>
      new Promise<void>((resolve) => {
        finish = resolve;
      }),
  );
  await until(() => redis.exists(key));
  const closed = here.close().then(() => expect(hasEnded).toBe(true));
  expect(await failure(here.runOnce(name, { every: HOUR }, () => {}))).toMatchObject({
    code: "CLIENT_CLOSED",
  });
  hasEnded = true;
  finish();
  expect(await call).toMatchObject({ ran: true });
  await closed;
  expect(await redis.get(key)).toMatch(/^1d /);
});

it("close() ends the turn of a body that does not end, as a crash would", async () => {
  const { name, here, redis, key } = await two();
  const errors: unknown[] = [];
  here.on("error", (error) => errors.push(error));
  let signal: AbortSignal | undefined;
  const call = failure(
    here.runOnce(name, { every: HOUR }, (turn) => {
      ({ signal } = turn);
      return until(() => turn.signal.aborted);
    }),
  );
  await until(() => signal);
  await here.close({ grace: 20 });
  expect(await call).toMatchObject({ code: "LOCK_LOST", reason: "closed" });
  expect(errors).toMatchObject([{ code: "LOCK_LEFT_BEHIND", lockName: name }]);
  expect(await redis.get(key)).toMatch(/^1r /);
});

it("a signal ends the request, and leaves nothing behind", async () => {
  const { name, here, redis, key } = await two();
  const reason = new Error("not now");
  expect(
    await failure(here.runOnce(name, { every: HOUR, signal: AbortSignal.abort(reason) }, () => {})),
  ).toBe(reason);
  const controller = new AbortController();
  const call = here.runOnce(name, { every: HOUR, signal: controller.signal }, () => expect.unreachable());
  controller.abort(reason);
  expect(await failure(call)).toBe(reason);
  await redis.ping(); // Redis has executed it
  await until(async () => (await redis.exists(key)) === 0);
  const late = new AbortController();
  const running = here.runOnce(name, { every: HOUR, signal: late.signal }, () => {
    late.abort(reason);
    return "ran";
  });
  expect(await running).toEqual({ ran: true, value: "ran" });
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
