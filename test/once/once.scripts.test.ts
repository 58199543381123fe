import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { Keys } from "../../src/redis/keys.ts";
import { onceLua } from "../../src/redis/lua.generated.ts";
import { needs, openScriptServer, type ScriptServer } from "../support/script-server.ts";
import { launchWithClock } from "../support/server-clock.ts";
import { until } from "../support/until.ts";

// The scripts of what runs at most once per interval, by themselves.

const { OWNER, MINE, HELD, GONE, STALE, RELEASED, TAKEN, RENEWED } = codes;
const TURN = new Keys("", false).ofOnce("x");
const NEVER = Number.MAX_SAFE_INTEGER;

let server: ScriptServer;
beforeAll(async () => {
  server = await openScriptServer();
});
beforeEach(() => server.redis.flushall());
afterAll(() => server.stop());

const hold = (number: number): string =>
  `host:1:0123456789abcdef:${`${number}`.padStart(8, "0")}abcdefghijklm`;
const run = (script: keyof typeof onceLua, ...args: (string | number)[]): Promise<unknown> =>
  server.redis.eval(onceLua[script].lua, 1, TURN, ...args);

interface Interval {
  readonly every?: number;
  readonly lease?: number;
  readonly aligned?: 0 | 1;
  readonly crash?: "again" | "keep";
}
const begin = async (of: string, given: Interval = {}, before = NEVER): Promise<(string | number)[]> => {
  const { every = 60_000, lease = 5_000, aligned = 0, crash = "again" } = given;
  return (await run("begin", of, lease, every, aligned, crash, before)) as (string | number)[];
};
const end = (of: string, begun: unknown, every = 60_000, aligned: 0 | 1 = 0): Promise<unknown> =>
  run("end", of, every, aligned, String(begun));
const micros = async (): Promise<number> => {
  const [seconds = 0, rest = 0] = await server.redis.time();
  return Number(seconds) * 1_000_000 + Number(rest);
};

it("one caller begins, and the others learn how long it may take, and then how long none begins again", async () => {
  const [code, now, begun, ttl] = await begin(hold(1));
  expect([code, begun, ttl]).toEqual([OWNER, String(now), 5_000]);
  expect(await begin(hold(2))).toMatchObject([HELD, expect.anything(), expect.anything()]);
  expect(await end(hold(1), begun)).toBe(RELEASED);
  const [done, , left] = await begin(hold(3));
  expect(done).toBe(GONE);
  expect(Number(left)).toBeGreaterThan(50_000);
  expect(Number(left)).toBeLessThanOrEqual(60_000);
});

it("the interval counts from the beginning, not from the end", async () => {
  const every = 400;
  const [, , begun] = await begin(hold(1), { every });
  await until(async () => (await micros()) > Number(begun) + 300_000, { what: "a long body" });
  await end(hold(1), begun, every);
  const left = await server.redis.pttl(TURN);
  expect(left).toBeLessThanOrEqual(100);
  await until(async () => (await begin(hold(2), { every }))[0] === OWNER);
  expect(await micros()).toBeGreaterThanOrEqual(Number(begun) + every * 1_000);
});

it("a body that takes longer than the interval frees the turn when it ends", async () => {
  const [, , begun] = await begin(hold(1), { every: 5 });
  await until(async () => (await micros()) > Number(begun) + 5_000, { what: "the end of the interval" });
  expect((await begin(hold(2), { every: 5 }))[0]).toBe(HELD);
  expect(await end(hold(1), begun, 5)).toBe(RELEASED);
  expect((await begin(hold(2), { every: 5 }))[0]).toBe(OWNER);
});

it("aligned, the interval ends with the slot of the server's clock", async () => {
  const every = 3_600_000;
  const [, , begun] = await begin(hold(1), { every, aligned: 1 });
  await end(hold(1), begun, every, 1);
  const ends = (Math.floor(Number(begun) / 1_000 / every) + 1) * every;
  expect(Math.abs((await server.redis.pttl(TURN)) - (ends - (await micros()) / 1_000))).toBeLessThan(1_000);
});

describe("a late copy", () => {
  it("of begin does nothing", async () => {
    expect((await begin(hold(1), {}, (await micros()) - 1))[0]).toBe(STALE);
    expect(await server.redis.exists(TURN)).toBe(0);
  });

  it("of begin, late, says that its turn runs, with the whole lease", async () => {
    const [, , begun] = await begin(hold(1));
    await server.redis.pexpire(TURN, 1_000);
    expect(await begin(hold(1), {}, Number(begun))).toMatchObject([
      MINE,
      expect.anything(),
      begun,
      expect.anything(),
    ]);
    expect(await server.redis.pttl(TURN)).toBeGreaterThan(1_000);
    expect((await begin(hold(2), {}, Number(begun)))[0]).toBe(STALE);
  });

  it("of begin, in time, says that it runs, and only extends its TTL", async () => {
    const [, , begun] = await begin(hold(1));
    await run("renew", hold(1), 90_000);
    expect(await begin(hold(1))).toMatchObject([MINE, expect.anything(), begun, expect.anything()]);
    expect(await server.redis.pttl(TURN)).toBeGreaterThan(80_000);
  });

  it("of end changes nothing, and its answer says so", async () => {
    const [, , begun] = await begin(hold(1));
    await end(hold(1), begun);
    await server.redis.pexpire(TURN, 1_000);
    expect(await end(hold(1), begun)).toBe(RELEASED);
    expect(await server.redis.pttl(TURN)).toBeLessThanOrEqual(1_000);
  });

  it("of a renewal after the end does not keep the turn", async () => {
    const [, , begun] = await begin(hold(1), { every: 1_000 });
    await end(hold(1), begun, 1_000);
    expect(await run("renew", hold(1), 30_000)).toEqual([TAKEN, 0]);
    expect(await server.redis.pttl(TURN)).toBeLessThanOrEqual(1_000);
  });

  it("of end, or of leave, does not touch another caller's turn", async () => {
    const [, , begun] = await begin(hold(1), { every: 1 });
    await until(async () => (await micros()) > Number(begun) + 1_000, { what: "the end of the interval" });
    await end(hold(1), begun, 1);
    expect(await end(hold(1), begun)).toBe(GONE);
    await begin(hold(2));
    const before = await server.redis.get(TURN);
    expect(await end(hold(1), begun)).toBe(TAKEN);
    expect(await run("leave", hold(1))).toBe(GONE);
    expect(await server.redis.get(TURN)).toBe(before);
  });
});

describe("a crash", () => {
  it("frees the turn after the lease", async () => {
    await begin(hold(1), { lease: 30 });
    await until(async () => (await begin(hold(2)))[0] === OWNER);
  });

  it("keeps it to its end if asked to, also aligned", async () => {
    await begin(hold(1), { lease: 30, crash: "keep" });
    expect(await server.redis.pttl(TURN)).toBeGreaterThan(50_000);
    await server.redis.flushall();
    await begin(hold(1), { lease: 30_000, every: 1_000, crash: "keep", aligned: 1 });
    expect(await server.redis.pttl(TURN)).toBeGreaterThan(25_000);
  });
});

needs("a clock of its own")("a server whose clock is in 1970 begins turns and ends them", async () => {
  const { server: young, clock } = await launchWithClock();
  const one = new Redis(young.url);
  onTestFinished(async () => {
    one.disconnect();
    await young.stop();
  });
  clock.jump(50_000_000 - Date.now());
  const ask = (script: keyof typeof onceLua, ...args: (string | number)[]): Promise<unknown> =>
    one.eval(onceLua[script].lua, 1, TURN, ...args);
  const [code, , begun] = (await ask("begin", hold(1), 5_000, 60_000, 0, "again", NEVER)) as unknown[];
  expect(code).toBe(OWNER);
  expect(await ask("renew", hold(1), 9_000)).toEqual([RENEWED, 9_000]);
  expect(await ask("end", hold(1), 60_000, 0, String(begun))).toBe(RELEASED);
  expect(await ask("end", hold(1), 60_000, 0, Number(begun))).toBe(RELEASED);
  const [next] = (await ask("begin", hold(2), 5_000, 60_000, 0, "again", NEVER)) as unknown[];
  expect(next).toBe(GONE);
});

it("a turn that began and never ran is taken back", async () => {
  await begin(hold(1), { crash: "keep" });
  expect(await run("leave", hold(1))).toBe(RELEASED);
  expect(await server.redis.exists(TURN)).toBe(0);
});

it("a renewal extends a running turn", async () => {
  await begin(hold(1));
  expect(await run("renew", hold(1), 30_000)).toEqual([RENEWED, 30_000]);
  expect(await run("renew", hold(2), 30_000)).toEqual([TAKEN, 0]);
  await server.redis.del(TURN);
  expect(await run("renew", hold(1), 30_000)).toEqual([GONE, 0]);
});

needs("maxmemory")("a full Redis accepts an end", async () => {
  const [, , begun] = await begin(hold(1));
  await server.redis.config("SET", "maxmemory", "1");
  try {
    await expect(begin(hold(2), {})).resolves.toMatchObject([HELD, expect.anything(), expect.anything()]);
    expect(await end(hold(1), begun)).toBe(RELEASED);
    expect(await server.redis.get(TURN)).toBe(`1d ${begun}`);
  } finally {
    await server.redis.config("SET", "maxmemory", "0");
  }
});

it("a key that holds no turn is left alone", async () => {
  for (const [text, error] of [
    ["2r 1700000000000000 x", "LOCKFORMAT 2"],
    ["hello", "WRONGTYPE"],
  ] as const) {
    await server.redis.set(TURN, text);
    for (const command of [() => begin(hold(1)), () => end(hold(1), 1), () => run("leave", hold(1))])
      await expect(command()).rejects.toThrow(error);
    expect(await server.redis.get(TURN)).toBe(text);
  }
});
