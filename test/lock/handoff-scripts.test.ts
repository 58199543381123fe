import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { PATIENCE_MIN } from "../../src/defaults.ts";
import { codes, handoffLua } from "../../src/redis/lua.generated.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { until } from "../support/until.ts";

// The hand-off's scripts by themselves: what stands in Redis that no client of today would write, or that time has changed.

const { OWNER, MINE, HELD, GONE, RELEASED, TAKEN, BLOCKED } = codes;
const KEYS = ["holdfast:{x}", "holdfast:{x}:queue", "holdfast:{x}:clients", "holdfast:clock"];
const [LOCK = "", QUEUE = "", CLIENTS = "", CLOCK = ""] = KEYS;
const NEVER = Number.MAX_SAFE_INTEGER;

let server: LocalServer;
let redis: Redis;
let ears: Redis;

beforeAll(async () => {
  server = await launchServer();
  redis = new Redis(server.url);
  ears = new Redis(server.url);
  await ears.subscribe(channel("a"), channel("b"), channel("c"));
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  redis.disconnect();
  ears.disconnect();
  await server.stop();
});

/** `a`, `b` and `c` are heard; nobody else is. */
const channel = (client: string): string => `holdfast:client:${client}`;
const hold = (client: string, number = 1): string =>
  `${channel(client)}:${`${number}`.padStart(8, "0")}abcdefghijklm`;
const entry = (of: string, counted = 1, ttl = 3_000, passes = 0): string =>
  `${counted} ${ttl} ${passes} ${of}`;

const run = (script: keyof typeof handoffLua, ...args: (string | number)[]): Promise<unknown> =>
  redis.eval(handoffLua[script].lua, KEYS.length, ...KEYS, ...args);
const acquire = (of: string, queueing = "", passes = 0): Promise<unknown> =>
  run("acquire", of, 30_000, NEVER, passes, queueing);
const release = (of: string): Promise<unknown> => run("release", of, 1);
const recheck = (of: string, counted: string, patience = 4_500, queued = entry(of)): Promise<unknown> =>
  run("recheck", of, 30_000, 0, queued, patience, counted);
const holder = async (): Promise<string | undefined> => (await redis.get(LOCK))?.slice(37);
const micros = async (): Promise<number> => {
  const [seconds = 0, rest = 0] = await redis.time();
  return Number(seconds) * 1_000_000 + Number(rest);
};

it("the times that the scripts know are those of the client", () => {
  expect(PATIENCE_MIN).toBe(codes.ENTRY_TTL / 1_000);
});

describe("tickets", () => {
  it("a caller that comes after the server's clock went back stands behind those that wait; a yield does not give the lock back to itself", async () => {
    await acquire(hold("a"));
    await redis.zadd(QUEUE, (await micros()) + 60_000_000, entry(hold("b"))); // queued before the step
    expect(await acquire(hold("c"), entry(hold("c")))).toMatchObject([
      HELD,
      expect.anything(),
      expect.anything(),
      1,
    ]);
    const yielded = await run("yield", hold("a"), 1, hold("a", 2), 30_000, 0, entry(hold("a", 2)));
    expect(yielded).toMatchObject([HELD, expect.anything(), 3_000, 1]);
    expect(await holder()).toBe(hold("b"));
    expect(await redis.zrange(QUEUE, 0, "-1")).toEqual([entry(hold("c")), entry(hold("a", 2))]);
  });

  it("a copy of the command that queued keeps its place", async () => {
    await acquire(hold("a"));
    await acquire(hold("b"), entry(hold("b")));
    await acquire(hold("c"), entry(hold("c")));
    const before = await redis.zrange(QUEUE, 0, "-1", "WITHSCORES");
    expect(await acquire(hold("b"), entry(hold("b")))).toMatchObject([
      HELD,
      expect.anything(),
      expect.anything(),
      0,
    ]);
    expect(await redis.zrange(QUEUE, 0, "-1", "WITHSCORES")).toEqual(before);
  });
});

describe("the clock of tokens", () => {
  it.each([
    ["no clock", null, 0],
    ["one digit", "5", 6],
    ["15 digits", "999999999999999", 1_000_000_000_000_000],
    ["a word", "hello", 0],
    ["no number", "nan", 0],
    ["16 characters that are no 16 digits", "1900000000.12345", 0],
    ["a number in 16 characters, below all tokens", "1e15            ", 0],
    ["a fraction", "1900000000000000.5", 1_900_000_000_000_001],
    ["the future", "8000000000000000", 8_000_000_000_000_001],
  ] as const)("%s: every lock stays readable, and no token is below it", async (_, text, least) => {
    if (text !== null) await redis.set(CLOCK, text);
    for (const passes of [0, 16]) {
      const owner = hold("a", passes + 1);
      const [code, , token] = (await acquire(owner, "", passes)) as number[];
      expect(code).toBe(OWNER);
      expect(Number(token)).toBeGreaterThanOrEqual(Math.max(least, 1e15));
      expect(await redis.get(LOCK)).toBe(`10 ${token} ${token} ${owner}`);
      await acquire(hold("b", passes + 1), entry(hold("b", passes + 1), 1, 3_000, passes));
      expect(await release(owner)).toBe(RELEASED);
      const [next, since] = ((await redis.get(LOCK)) ?? "").slice(3).split(" ");
      expect([Number(next) > Number(token) + passes, since]).toEqual([true, `${token}`]);
      expect(Number(await redis.get(CLOCK))).toBe(Number(next) + passes);
      expect(await release(hold("b", passes + 1))).toBe(RELEASED);
      expect(await redis.exists(LOCK)).toBe(0);
    }
  });

  it.each(["9007199254740991", "10000000000000000", "inf"])(
    "%s: a release gives no token that does not exist, and loses nobody",
    async (text) => {
      await acquire(hold("a"));
      await acquire(hold("b"), entry(hold("b")));
      await redis.set(CLOCK, text);
      const before = await redis.zrange(QUEUE, 0, "-1", "WITHSCORES");
      expect(await release(hold("a"))).toBe(RELEASED);
      expect(await redis.exists(LOCK)).toBe(0);
      expect(await redis.zrange(QUEUE, 0, "-1", "WITHSCORES")).toEqual(before);
      expect(await redis.get(CLOCK)).toBe(text);
      for (const ask of [acquire(hold("c")), recheck(hold("b"), "1")])
        await expect(ask).rejects.toThrow(/no larger token/);
      expect(await redis.zrange(QUEUE, 0, "-1", "WITHSCORES")).toEqual(before);
      await redis.del(CLOCK);
      expect(await recheck(hold("b"), "1")).toMatchObject([OWNER, expect.anything(), expect.anything()]);
    },
  );

  it("of another type: a release loses nobody either", async () => {
    await acquire(hold("a"));
    await acquire(hold("b"), entry(hold("b")));
    await redis.del(CLOCK);
    await redis.rpush(CLOCK, "an element");
    expect(await release(hold("a"))).toBe(RELEASED);
    expect(await redis.zcard(QUEUE)).toBe(1);
    await expect(acquire(hold("c"))).rejects.toThrow(/WRONGTYPE/);
    expect(await redis.zcard(QUEUE)).toBe(1);
  });
});

describe("entries", () => {
  it("that cannot be read are skipped, one by one and in a crowd", async () => {
    for (const count of [1, 300]) {
      await acquire(hold("a", count));
      const strange = ["", "nobody", "1 3000 0 short", "7 3000 0 x", `1 0 0 ${hold("b")}`, "1 3000 0 "];
      for (let i = 0; i < count; i++) await redis.zadd(QUEUE, i, `${strange[i % strange.length]}${i || ""}`);
      await acquire(hold("b", count), entry(hold("b", count)));
      expect(await release(hold("a", count))).toBe(RELEASED);
      expect([await holder(), await redis.exists(QUEUE)]).toEqual([hold("b", count), 0]);
      await release(hold("b", count));
    }
  });

  it("with a label behind the hold are granted", async () => {
    await acquire(hold("a"));
    await acquire(hold("b"), `${entry(hold("b"))} nightly`);
    await release(hold("a"));
    expect(await holder()).toBe(hold("b"));
  });

  it("of a client that nobody hears are skipped when receivers count, and granted when they prove nothing", async () => {
    await acquire(hold("a"));
    await acquire(hold("x"), entry(hold("x"), 1));
    await acquire(hold("y"), entry(hold("y"), 0));
    await release(hold("a"));
    expect(await holder()).toBe(hold("y"));
  });
});

describe("what a re-check says of its client", () => {
  it("counts more than its entries: they were queued unheard, and are heard now", async () => {
    await acquire(hold("a"));
    await acquire(hold("x", 1), entry(hold("x", 1), 0));
    await acquire(hold("x", 2), entry(hold("x", 2), 0));
    await acquire(hold("b"), entry(hold("b")));
    await recheck(hold("x", 1), "1", 4_500, entry(hold("x", 1), 0));
    await release(hold("a"));
    expect(await holder()).toBe(hold("b")); // receivers count now, and there is none
  });

  it("is taken back by the next entry that is queued unheard, and the places of the client stay", async () => {
    await acquire(hold("a"));
    await acquire(hold("x", 1), entry(hold("x", 1), 1));
    await recheck(hold("x", 1), "1", 9_000);
    const [, until] = await redis.zrange(CLIENTS, 0, "-1", "WITHSCORES");
    await acquire(hold("x", 2), entry(hold("x", 2), 0));
    expect(await redis.zrange(CLIENTS, 0, "-1", "WITHSCORES")).toEqual([`0${channel("x")}`, until]);
    await release(hold("a"));
    expect(await holder()).toBe(hold("x", 1));
  });

  it("is what its last re-check says; a client that hears nothing says that it proves nothing", async () => {
    await acquire(hold("a"));
    await acquire(hold("x"), entry(hold("x")));
    for (const word of ["1", "0", "1"] as const) {
      expect(await recheck(hold("x"), word)).toMatchObject([HELD, expect.anything(), expect.anything(), 0]);
      expect(await redis.zrange(CLIENTS, 0, "-1")).toEqual([word + channel("x")]);
    }
  });

  it("keeps all of its places when their own time is over, and only so long", async () => {
    await acquire(hold("a"));
    const old = (await micros()) - codes.ENTRY_TTL - 1;
    await redis.zadd(
      QUEUE,
      old,
      entry(hold("b", 1)),
      old + 1,
      entry(hold("b", 2)),
      old + 2,
      entry(hold("c")),
    );
    await recheck(hold("b", 1), "1", 60_000, entry(hold("b", 1)));
    await redis.zrem(QUEUE, entry(hold("b", 1)));
    expect(await release(hold("a"))).toBe(RELEASED);
    expect(await holder()).toBe(hold("b", 2));
    await redis.zadd(CLIENTS, (await micros()) - 1, `1${channel("b")}`);
    await redis.zadd(QUEUE, old + 1, entry(hold("b", 3)));
    expect(await release(hold("b", 2))).toBe(RELEASED);
    expect(await redis.exists(LOCK, QUEUE)).toBe(0);
  });

  it("is forgotten when its time is over: the next look of anybody removes it", async () => {
    await acquire(hold("a"));
    await acquire(hold("x"), entry(hold("x")));
    await acquire(hold("b"), entry(hold("b")));
    await recheck(hold("x"), "1", 1);
    const isOver = (await micros()) + 2_000;
    await until(async () => (await micros()) > isOver, { what: "its time to be over" });
    await recheck(hold("b"), "1");
    expect(await redis.zrange(CLIENTS, 0, "-1")).toEqual([`1${channel("b")}`]);
    for (const key of [QUEUE, CLIENTS]) expect(await redis.pttl(key)).toBeGreaterThanOrEqual(PATIENCE_MIN);
  });

  it("of another type is no reason to lose anybody in a release", async () => {
    await acquire(hold("a"));
    await redis.rpush(CLIENTS, "an element");
    await acquire(hold("b"), entry(hold("b")));
    expect(await release(hold("a"))).toBe(RELEASED);
    expect(await holder()).toBe(hold("b"));
  });
});

describe("a crowd of dead entries", () => {
  it("of many clients and of one is taken away, whatever kept some of them", async () => {
    await acquire(hold("a"));
    const now = await micros();
    const dead = Array.from({ length: 3_000 }, (_, i) => [
      now - 5_000_000 + i,
      entry(hold(`gone${i % 7 ? i : 0}`, i)),
    ]);
    await redis.zadd(QUEUE, ...(dead.flat() as [number, string]));
    await redis.zadd(CLIENTS, now + 60_000_000, `1${channel("gone0")}`);
    await acquire(hold("b"), entry(hold("b")));
    await release(hold("a"));
    expect([await holder(), await redis.exists(QUEUE)]).toEqual([hold("b"), 0]);
  });

  it("ends before a live one that stands in it", async () => {
    await acquire(hold("a"));
    const now = await micros();
    for (let i = 0; i < 200; i++) await redis.zadd(QUEUE, now - 1_000 + i, entry(hold(`gone${i}`)));
    await redis.zadd(QUEUE, now - 1_000 + 100.5, entry(hold("y"), 0));
    await release(hold("a"));
    expect([await holder(), await redis.zcard(QUEUE)]).toEqual([hold("y"), 99]);
  });
});

describe("a lock that may be taken only behind another one", () => {
  const behind = (of: string, before: string): Promise<unknown> =>
    redis.eval(handoffLua.acquire.lua, 5, ...KEYS, "holdfast:{y}", of, 30_000, NEVER, 0, "", before);

  it("is not, unless that one is owned by the hold that is named", async () => {
    expect(await behind(hold("a"), hold("b"))).toMatchObject([BLOCKED, expect.anything()]);
    expect(await redis.keys("*")).toEqual([]);
    await redis.set("holdfast:{y}", `10 1800000000000000 1800000000000000 ${hold("b")}`);
    expect(await behind(hold("a"), hold("c"))).toMatchObject([BLOCKED, expect.anything()]);
    expect(await behind(hold("a"), hold("b"))).toMatchObject([OWNER, expect.anything(), expect.anything()]);
    await redis.del("holdfast:{y}");
    // A copy of what was done is told so.
    expect(await behind(hold("a"), hold("b"))).toMatchObject([
      MINE,
      expect.anything(),
      expect.anything(),
      30_000,
    ]);
  });
});

it("a release says what became of its hold: its own end, nobody's, or another's", async () => {
  const [, , token = 0] = (await acquire(hold("a"))) as number[];
  await acquire(hold("b"), entry(hold("b")));
  expect(await run("release", hold("a"), token)).toBe(RELEASED);
  expect(await run("release", hold("a"), token)).toBe(RELEASED);
  expect(await run("release", hold("c"), 5)).toBe(TAKEN);
  await redis.del(LOCK);
  expect(await run("release", hold("a"), token)).toEqual([GONE, await redis.get(CLOCK)]);
});

describe("nothing is left for ever", () => {
  it("the word of a client that queues unheard keeps the TTL of its key", async () => {
    await acquire(hold("a"));
    await acquire(hold("x", 1), entry(hold("x", 1), 1));
    await recheck(hold("x", 1), "1", 9_000, entry(hold("x", 1), 1));
    await acquire(hold("x", 2), entry(hold("x", 2), 0));
    expect(await redis.zrange(CLIENTS, 0, "-1")).toEqual([`0${channel("x")}`]);
    expect(await redis.pttl(CLIENTS)).toBeGreaterThan(9_000);
  });

  it("an entry that was popped and gets no token stands with a TTL", async () => {
    await acquire(hold("a"));
    await acquire(hold("b"), entry(hold("b")));
    await redis.set(CLOCK, `${Number.MAX_SAFE_INTEGER}`);
    expect(await release(hold("a"))).toBe(RELEASED);
    expect(await redis.zrange(QUEUE, 0, "-1")).toEqual([entry(hold("b"))]);
    expect(await redis.pttl(QUEUE)).toBeGreaterThan(0);
  });

  it("leave takes an entry out although the lock's key is of another type", async () => {
    await acquire(hold("a"));
    await acquire(hold("b"), entry(hold("b")));
    await redis.del(LOCK);
    await redis.rpush(LOCK, "x");
    await expect(run("leave", hold("b"), entry(hold("b")))).rejects.toThrow("WRONGTYPE");
    expect(await redis.exists(QUEUE)).toBe(0);
  });
});

describe("an entry that no client has written is skipped", () => {
  it.each([
    ["a TTL that is no integer for Redis", `1 99999999999999999999 0 ${hold("b", 9)}`],
    ["passes beyond all tokens", `1 3000 99999999999999999999999 ${hold("b", 9)}`],
    ["no hold of a client", "1 3000 0 foo"],
    ["no hold at all", "1 3000 0 "],
  ])("%s", async (_, foreign) => {
    await acquire(hold("a"));
    await redis.zadd(QUEUE, (await micros()) - 1_000, foreign);
    await acquire(hold("c"), entry(hold("c")));
    expect(await release(hold("a"))).toBe(RELEASED);
    expect([await holder(), await redis.exists(QUEUE)]).toEqual([hold("c"), 0]);
    expect((await redis.get(CLOCK))?.length).toBe(16);
  });
});
