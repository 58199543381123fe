import { describe, expect, it } from "vitest";
import { PATIENCE_MIN } from "../../src/defaults.ts";
import { codes } from "../../src/redis/codes.generated.ts";
import { type Placed, readHeld } from "../../src/redis/replies.ts";
import { BareScripts, CLIENTS, CLOCK, channel, entry, hold, LOCK, QUEUE } from "../support/bare-scripts.ts";
import { until } from "../support/until.ts";

// The hand-off's scripts by themselves: what stands in Redis that no client of today would write,
// or that time has changed.

const { OWNER, MINE, HELD, GONE, RELEASED, TAKEN, BLOCKED } = codes;
const scripts = new BareScripts();
const some = expect.anything();

it("the scripts use the same times as the client", () => {
  expect(PATIENCE_MIN).toBe(codes.ENTRY_TTL / 1_000);
});

it("a held lock answers one number, or a list if something is too large for it", async () => {
  await scripts.acquire(hold("a"));
  const ask = async (early: number): Promise<unknown> => {
    const notAfter = (await scripts.micros()) + early;
    const answer = await scripts.run("acquire", hold("b"), 30_000, notAfter, "1 3000 0 ");
    return Array.isArray(answer) ? answer : readHeld(answer, notAfter);
  };
  const now = await scripts.micros();
  const held = (await ask(5_000_000)) as Extract<Placed, { is: "held" }>;
  expect(held).toMatchObject({ is: "held", position: 0, flag: 0 });
  expect([held.at >= now, held.at <= (await scripts.micros())]).toEqual([true, true]);
  expect([held.ttl > 0, held.ttl <= 30_000]).toEqual([true, true]);
  expect(await ask(60_000_000)).toEqual([HELD, some, some, 0, 0]);
  const value = (await scripts.redis.get(LOCK)) ?? "";
  await scripts.redis.set(LOCK, value, "PX", 131_072 + 60_000);
  expect(await ask(5_000_000)).toEqual([HELD, some, some, 0, 0]);
  // No client of today writes such a digit.
  for (const [digit, told] of [
    ["3", 3],
    ["9", 9],
    ["/", -1],
  ] as const) {
    await scripts.redis.set(LOCK, `1${digit}${value.slice(2)}`, "PX", 30_000);
    expect(await ask(5_000_000)).toEqual([HELD, some, some, 0, told]);
  }
  await scripts.redis.set(LOCK, value);
  expect(await ask(5_000_000)).toEqual([HELD, some, -1, 0, 0]);
});

describe("tickets", () => {
  it("a caller that comes after the server's clock went back queues after the others; a yield does not return the lock to itself", async () => {
    await scripts.acquire(hold("a"));
    // queued before the step
    await scripts.redis.zadd(QUEUE, (await scripts.micros()) + 60_000_000, entry(hold("b")));
    expect(await scripts.acquire(hold("c"), entry(hold("c")))).toEqual([HELD, some, some, 1, 0]);
    const yielded = await scripts.yield(hold("a"), hold("a", 2));
    expect(yielded).toEqual([HELD, some, 3_000, 1]);
    expect(await scripts.holder()).toBe(hold("b"));
    expect(await scripts.redis.zrange(QUEUE, 0, "-1")).toEqual([entry(hold("c")), entry(hold("a", 2))]);
  });

  it("a copy of the command that queued keeps its place", async () => {
    await scripts.acquire(hold("a"));
    await scripts.acquire(hold("b"), entry(hold("b")));
    await scripts.acquire(hold("c"), entry(hold("c")));
    const before = await scripts.redis.zrange(QUEUE, 0, "-1", "WITHSCORES");
    expect(await scripts.acquire(hold("b"), entry(hold("b")))).toEqual([HELD, some, some, 0, 0]);
    expect(await scripts.redis.zrange(QUEUE, 0, "-1", "WITHSCORES")).toEqual(before);
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
    if (text !== null) await scripts.redis.set(CLOCK, text);
    for (const passes of [0, 16]) {
      const owner = hold("a", passes + 1);
      const [code, , token] = (await scripts.acquire(owner, "", passes)) as number[];
      expect(code).toBe(OWNER);
      expect(Number(token)).toBeGreaterThanOrEqual(Math.max(least, 1e15));
      expect(await scripts.redis.get(LOCK)).toBe(`10 ${token} ${token} ${owner}`);
      await scripts.acquire(hold("b", passes + 1), entry(hold("b", passes + 1), 1, 3_000, passes));
      expect(await scripts.release(owner)).toBe(RELEASED);
      const [next, since] = ((await scripts.redis.get(LOCK)) ?? "").slice(3).split(" ");
      expect([Number(next) > Number(token) + passes, since]).toEqual([true, `${token}`]);
      expect(Number(await scripts.redis.get(CLOCK))).toBe(Number(next) + passes);
      expect(await scripts.release(hold("b", passes + 1))).toBe(RELEASED);
      expect(await scripts.redis.exists(LOCK)).toBe(0);
    }
  });

  it.each(["9007199254740991", "10000000000000000", "inf"])(
    "%s: a release gives no invalid token, and loses no waiter",
    async (text) => {
      await scripts.acquire(hold("a"));
      await scripts.acquire(hold("b"), entry(hold("b")));
      await scripts.redis.set(CLOCK, text);
      const before = await scripts.redis.zrange(QUEUE, 0, "-1", "WITHSCORES");
      expect(await scripts.release(hold("a"))).toBe(RELEASED);
      expect(await scripts.redis.exists(LOCK)).toBe(0);
      expect(await scripts.redis.zrange(QUEUE, 0, "-1", "WITHSCORES")).toEqual(before);
      expect(await scripts.redis.get(CLOCK)).toBe(text);
      for (const ask of [scripts.acquire(hold("c")), scripts.recheck(hold("b"), "1")])
        await expect(ask).rejects.toThrow(/no larger token/);
      expect(await scripts.redis.zrange(QUEUE, 0, "-1", "WITHSCORES")).toEqual(before);
      await scripts.redis.del(CLOCK);
      expect(await scripts.recheck(hold("b"), "1")).toEqual([OWNER, some, some, 0]);
    },
  );

  it("of another type: a release loses no waiter either", async () => {
    await scripts.acquire(hold("a"));
    await scripts.acquire(hold("b"), entry(hold("b")));
    await scripts.redis.del(CLOCK);
    await scripts.redis.rpush(CLOCK, "an element");
    expect(await scripts.release(hold("a"))).toBe(RELEASED);
    expect(await scripts.redis.zcard(QUEUE)).toBe(1);
    await expect(scripts.acquire(hold("c"))).rejects.toThrow(/WRONGTYPE/);
    expect(await scripts.redis.zcard(QUEUE)).toBe(1);
  });
});

describe("entries", () => {
  it("that cannot be read are skipped, singly and in a crowd", async () => {
    for (const count of [1, 300]) {
      await scripts.acquire(hold("a", count));
      const strange = ["", "nobody", "1 3000 0 short", "7 3000 0 x", `1 0 0 ${hold("b")}`, "1 3000 0 "];
      for (let i = 0; i < count; i++)
        await scripts.redis.zadd(QUEUE, i, `${strange[i % strange.length]}${i || ""}`);
      await scripts.acquire(hold("b", count), entry(hold("b", count)));
      expect(await scripts.release(hold("a", count))).toBe(RELEASED);
      expect([await scripts.holder(), await scripts.redis.exists(QUEUE)]).toEqual([hold("b", count), 0]);
      await scripts.release(hold("b", count));
    }
  });

  it("of a client that receives nothing are skipped if receivers count, and granted if the count proves nothing", async () => {
    await scripts.acquire(hold("a"));
    await scripts.acquire(hold("x"), entry(hold("x"), 1));
    await scripts.acquire(hold("y"), entry(hold("y"), 0));
    await scripts.release(hold("a"));
    expect(await scripts.holder()).toBe(hold("y"));
  });
});

describe("what a re-check states about its client", () => {
  it("counts more than its entries: they were queued without a subscription, and now have one", async () => {
    await scripts.acquire(hold("a"));
    await scripts.acquire(hold("x", 1), entry(hold("x", 1), 0));
    await scripts.acquire(hold("x", 2), entry(hold("x", 2), 0));
    await scripts.acquire(hold("b"), entry(hold("b")));
    await scripts.recheck(hold("x", 1), "1", 4_500, entry(hold("x", 1), 0));
    await scripts.release(hold("a"));
    expect(await scripts.holder()).toBe(hold("b")); // receivers count now, and there is none
  });

  it("is revoked by the next entry queued without a subscription, and the places of the client stay", async () => {
    await scripts.acquire(hold("a"));
    await scripts.acquire(hold("x", 1), entry(hold("x", 1), 1));
    await scripts.recheck(hold("x", 1), "1", 9_000);
    const [, until] = await scripts.redis.zrange(CLIENTS, 0, "-1", "WITHSCORES");
    await scripts.acquire(hold("x", 2), entry(hold("x", 2), 0));
    expect(await scripts.redis.zrange(CLIENTS, 0, "-1", "WITHSCORES")).toEqual([`0${channel("x")}`, until]);
    await scripts.release(hold("a"));
    expect(await scripts.holder()).toBe(hold("x", 1));
  });

  it("is what its last re-check stated; a client without a subscription states that its count proves nothing", async () => {
    await scripts.acquire(hold("a"));
    await scripts.acquire(hold("x"), entry(hold("x")));
    for (const word of ["1", "0", "1"] as const) {
      expect(await scripts.recheck(hold("x"), word)).toEqual([HELD, some, some, 0, 0]);
      expect(await scripts.redis.zrange(CLIENTS, 0, "-1")).toEqual([word + channel("x")]);
    }
  });

  it("keeps all of its places after their own time, and only until it expires itself", async () => {
    await scripts.acquire(hold("a"));
    const old = (await scripts.micros()) - codes.ENTRY_TTL - 1;
    await scripts.redis.zadd(
      QUEUE,
      old,
      entry(hold("b", 1)),
      old + 1,
      entry(hold("b", 2)),
      old + 2,
      entry(hold("c")),
    );
    await scripts.recheck(hold("b", 1), "1", 60_000, entry(hold("b", 1)));
    await scripts.redis.zrem(QUEUE, entry(hold("b", 1)));
    expect(await scripts.release(hold("a"))).toBe(RELEASED);
    expect(await scripts.holder()).toBe(hold("b", 2));
    await scripts.redis.zadd(CLIENTS, (await scripts.micros()) - 1, `1${channel("b")}`);
    await scripts.redis.zadd(QUEUE, old + 1, entry(hold("b", 3)));
    expect(await scripts.release(hold("b", 2))).toBe(RELEASED);
    expect(await scripts.redis.exists(LOCK, QUEUE)).toBe(0);
  });

  it("is forgotten when it expires: the next re-check of any client removes it", async () => {
    await scripts.acquire(hold("a"));
    await scripts.acquire(hold("x"), entry(hold("x")));
    await scripts.acquire(hold("b"), entry(hold("b")));
    await scripts.recheck(hold("x"), "1", 1);
    const isOver = (await scripts.micros()) + 2_000;
    await until(async () => (await scripts.micros()) > isOver, { what: "its time to be over" });
    await scripts.recheck(hold("b"), "1");
    expect(await scripts.redis.zrange(CLIENTS, 0, "-1")).toEqual([`1${channel("b")}`]);
    for (const key of [QUEUE, CLIENTS])
      expect(await scripts.redis.pttl(key)).toBeGreaterThanOrEqual(PATIENCE_MIN);
  });

  it("of another type makes a release lose no waiter", async () => {
    await scripts.acquire(hold("a"));
    await scripts.redis.rpush(CLIENTS, "an element");
    await scripts.acquire(hold("b"), entry(hold("b")));
    expect(await scripts.release(hold("a"))).toBe(RELEASED);
    expect(await scripts.holder()).toBe(hold("b"));
  });
});

describe("a crowd of dead entries", () => {
  it("of many clients and of one is removed, even if some of them were kept alive", async () => {
    await scripts.acquire(hold("a"));
    const now = await scripts.micros();
    const dead = Array.from({ length: 3_000 }, (_, i) => [
      now - 5_000_000 + i,
      entry(hold(`gone${i % 7 ? i : 0}`, i)),
    ]);
    await scripts.redis.zadd(QUEUE, ...(dead.flat() as [number, string]));
    await scripts.redis.zadd(CLIENTS, now + 60_000_000, `1${channel("gone0")}`);
    await scripts.acquire(hold("b"), entry(hold("b")));
    await scripts.release(hold("a"));
    expect([await scripts.holder(), await scripts.redis.exists(QUEUE)]).toEqual([hold("b"), 0]);
  });

  it("ends before a live one among them", async () => {
    await scripts.acquire(hold("a"));
    const now = await scripts.micros();
    for (let i = 0; i < 200; i++) await scripts.redis.zadd(QUEUE, now - 1_000 + i, entry(hold(`gone${i}`)));
    await scripts.redis.zadd(QUEUE, now - 1_000 + 100.5, entry(hold("y"), 0));
    await scripts.release(hold("a"));
    expect([await scripts.holder(), await scripts.redis.zcard(QUEUE)]).toEqual([hold("y"), 99]);
  });
});

describe("a lock that depends on another one", () => {
  it("is not acquired unless the named hold owns that one", async () => {
    expect(await scripts.behind(hold("a"), hold("b"))).toEqual([BLOCKED, some]);
    expect(await scripts.redis.keys("*")).toEqual([]);
    await scripts.redis.set("holdfast:{y}", `10 1800000000000000 1800000000000000 ${hold("b")}`);
    expect(await scripts.behind(hold("a"), hold("c"))).toEqual([BLOCKED, some]);
    expect(await scripts.behind(hold("a"), hold("b"))).toEqual([OWNER, some, some, 0]);
    await scripts.redis.del("holdfast:{y}");
    // A copy of what was done is told so.
    expect(await scripts.behind(hold("a"), hold("b"))).toEqual([MINE, some, some, 30_000, 0, 0]);
  });
});

it("a release states what became of its hold: ended now, gone, or another's", async () => {
  const [, , token = 0] = (await scripts.acquire(hold("a"))) as number[];
  await scripts.acquire(hold("b"), entry(hold("b")));
  expect(await scripts.run("release", hold("a"), token)).toBe(RELEASED);
  expect(await scripts.run("release", hold("a"), token)).toBe(RELEASED);
  expect(await scripts.run("release", hold("c"), 5)).toBe(TAKEN);
  await scripts.redis.del(LOCK);
  expect(await scripts.run("release", hold("a"), token)).toEqual([GONE, await scripts.redis.get(CLOCK)]);
});

describe("nothing stays without limit", () => {
  it("the statement of a client that queues without a subscription keeps the TTL of its key", async () => {
    await scripts.acquire(hold("a"));
    await scripts.acquire(hold("x", 1), entry(hold("x", 1), 1));
    await scripts.recheck(hold("x", 1), "1", 9_000, entry(hold("x", 1), 1));
    await scripts.acquire(hold("x", 2), entry(hold("x", 2), 0));
    expect(await scripts.redis.zrange(CLIENTS, 0, "-1")).toEqual([`0${channel("x")}`]);
    expect(await scripts.redis.pttl(CLIENTS)).toBeGreaterThan(9_000);
  });

  it("an entry that was popped and gets no token keeps a TTL", async () => {
    await scripts.acquire(hold("a"));
    await scripts.acquire(hold("b"), entry(hold("b")));
    await scripts.redis.set(CLOCK, `${Number.MAX_SAFE_INTEGER}`);
    expect(await scripts.release(hold("a"))).toBe(RELEASED);
    expect(await scripts.redis.zrange(QUEUE, 0, "-1")).toEqual([entry(hold("b"))]);
    expect(await scripts.redis.pttl(QUEUE)).toBeGreaterThan(0);
  });

  it("leave removes an entry although the lock's key is of another type", async () => {
    await scripts.acquire(hold("a"));
    await scripts.acquire(hold("b"), entry(hold("b")));
    await scripts.redis.del(LOCK);
    await scripts.redis.rpush(LOCK, "x");
    await expect(scripts.run("leave", hold("b"), entry(hold("b")))).rejects.toThrow("WRONGTYPE");
    expect(await scripts.redis.exists(QUEUE)).toBe(0);
  });
});

describe("an entry that no client has written is skipped", () => {
  it.each([
    ["a TTL that is no integer for Redis", `1 99999999999999999999 0 ${hold("b", 9)}`],
    ["local hand-offs beyond all tokens", `1 3000 99999999999999999999999 ${hold("b", 9)}`],
    ["no hold of a client", "1 3000 0 foo"],
    ["no hold at all", "1 3000 0 "],
  ])("%s", async (_, foreign) => {
    await scripts.acquire(hold("a"));
    await scripts.redis.zadd(QUEUE, (await scripts.micros()) - 1_000, foreign);
    await scripts.acquire(hold("c"), entry(hold("c")));
    expect(await scripts.release(hold("a"))).toBe(RELEASED);
    expect([await scripts.holder(), await scripts.redis.exists(QUEUE)]).toEqual([hold("c"), 0]);
    expect((await scripts.redis.get(CLOCK))?.length).toBe(16);
  });
});
