import { describe, expect, it } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { BareScripts, CLOCK, channel, entry, hold, LOCK } from "../support/bare-scripts.ts";
import { needs } from "../support/script-server.ts";

// How the holder that is told of waiters, and may have nobody inside, keeps its lock and gives it
// back, by the scripts.

const { GONE, RELEASED, TAKEN, RENEWED } = codes;
const scripts = new BareScripts();
const some = expect.anything();
const NONCE = "host:1:0123456789abcdef.fedcba9876543210";
const recall = (of: string, word = "-"): string => `recall ${of} ${word} ${LOCK}`;
const digit = async (lock = LOCK): Promise<string | undefined> => (await scripts.redis.get(lock))?.[1];

describe("renew-stays", () => {
  const ttl = 3_000;

  it("extends the TTL, never shortens it, and writes the digit in place", async () => {
    await scripts.acquire(hold("a"), "", 0, 0);
    await scripts.redis.pexpire(LOCK, 1_000);
    const value = await scripts.redis.get(LOCK);
    expect(await scripts.renewStays({ hold: hold("a"), ttl, told: 1 })).toEqual([some, RENEWED, ttl, 0, 1]);
    expect(await scripts.redis.get(LOCK)).toBe(value?.replace(/^10/, "11"));
    await scripts.redis.pexpire(LOCK, 60_000);
    expect(await scripts.renewStays({ hold: hold("a"), ttl, told: 2 })).toEqual([some, RENEWED, some, 0, 2]);
    expect(await scripts.redis.get(LOCK)).toBe(value?.replace(/^10/, "12"));
    expect(await scripts.redis.pttl(LOCK)).toBeGreaterThan(50_000);
    expect(await scripts.renewStays({ hold: hold("a"), ttl, told: "-" })).toEqual([
      some,
      RENEWED,
      some,
      0,
      2,
    ]);
  });

  it("answers for each of many: ours, wanted, free, another's, and not a lock", async () => {
    const [free, other, list, text] = ["{free}", "{other}", "{list}", "{text}"].map((it) => `holdfast:${it}`);
    await scripts.acquire(hold("a"));
    await scripts.acquire(hold("b"), entry(hold("b")));
    await scripts.redis.set(other ?? "", `10 1800000000000000 1800000000000000 ${hold("c")}`);
    await scripts.redis.rpush(list ?? "", "an element");
    await scripts.redis.set(text ?? "", "20 whatever that version likes");
    const locks = [free, other, list, text, LOCK];
    const answer = await scripts.renewStays(
      ...locks.map((lock = "") => ({ hold: hold("a"), ttl: 60_000, told: 2 as const, lock })),
    );
    const lost = [TAKEN, 0, 0, 0];
    expect(answer).toEqual([some, GONE, 0, 0, 0, ...lost, ...lost, ...lost, RENEWED, 60_000, 1, 2]);
    expect(await scripts.redis.get(text ?? "")).toBe("20 whatever that version likes");
    expect([await digit(other), await digit()]).toEqual(["0", "2"]);
  });

  it.each([
    ["absent", null, true],
    ["behind", "1000000000000001", true],
    ["of few digits", "5", true],
    ["what cannot be read", "hello", true],
    ["no number", "nan", true],
    ["ahead", "8000000000000000", false],
    ["at its end", "9007199254740991", false],
    ["a fraction of the future", "8000000000000000.5", false],
  ] as const)("advances a clock that is %s: every later token is larger", async (_, text, isRaised) => {
    await scripts.acquire(hold("a"));
    await (text === null ? scripts.redis.del(CLOCK) : scripts.redis.set(CLOCK, text));
    const [at] = (await scripts.renewStays({ hold: hold("a"), ttl, told: "-" })) as number[];
    expect(await scripts.redis.get(CLOCK)).toBe(isRaised ? `${at}` : text);
    expect(at).toBeGreaterThan(1e15);
  });

  it("writes no clock for holds that are lost, and none of another type", async () => {
    expect(await scripts.renewStays({ hold: hold("a"), ttl, told: 1 })).toEqual([some, GONE, 0, 0, 0]);
    expect(await scripts.redis.keys("*")).toEqual([]);
    await scripts.acquire(hold("a"));
    await scripts.redis.del(CLOCK);
    await scripts.redis.rpush(CLOCK, "an element");
    expect(await scripts.renewStays({ hold: hold("a"), ttl, told: "-" })).toEqual([0, RENEWED, some, 0, 0]);
    expect(await scripts.redis.lrange(CLOCK, 0, -1)).toEqual(["an element"]);
  });

  needs("maxmemory")("extends TTLs on a full Redis all the same, and says what was refused", async () => {
    await scripts.acquire(hold("a"));
    await scripts.redis.del(CLOCK);
    await scripts.redis.config("SET", "maxmemory", "1");
    try {
      // Its TTL needs no raise, so nothing that is allowed comes before what is refused.
      expect(await scripts.renewStays({ hold: hold("a"), ttl, told: 2 })).toEqual([0, RENEWED, some, 0, 0]);
      expect([await digit(), await scripts.redis.exists(CLOCK)]).toEqual(["0", 0]);
      const long = { hold: hold("a"), ttl: 60_000, told: 2 } as const;
      expect(await scripts.renewStays(long)).toEqual([some, RENEWED, 60_000, 0, 2]);
    } finally {
      await scripts.redis.config("SET", "maxmemory", "0");
    }
  });
});

describe("release-stays", () => {
  it("does for each what release does, also for one whose queue has waiters that others have not", async () => {
    const [free, other, list] = ["{free}", "{other}", "{list}"].map((it) => `holdfast:${it}`);
    await scripts.acquire(hold("a"), "", 0, 2);
    for (const client of ["x", "b"]) await scripts.acquire(hold(client), entry(hold(client)));
    const value = `12 1700000000000000 1700000000000000 ${hold("a")}`;
    const token = Number((await scripts.redis.get(LOCK))?.slice(3, 19));
    await scripts.redis.set(other ?? "", value);
    await scripts.redis.set("holdfast:{same}", value);
    // At one lock a re-check has kept the places of a client that nobody hears; at the others it has not.
    await scripts.redis.zadd("holdfast:{same}:clients", Number.MAX_SAFE_INTEGER, `0${channel("x")}`);
    await scripts.redis.zadd("holdfast:{same}:queue", 5, entry(hold("x", 2)));
    await scripts.redis.rpush(list ?? "", "an element");
    const locks = ["holdfast:{same}", free, other, list, LOCK];
    const holds = locks.map((lock = "") => ({ hold: hold("a"), token, lock }));
    const ends = await scripts.releaseStays(...holds);
    expect(ends).toEqual([some, RELEASED, GONE, RELEASED, TAKEN, RELEASED]);
    expect([await scripts.holder(), await scripts.redis.exists(other ?? "")]).toEqual([hold("b"), 0]);
    expect((await scripts.redis.get("holdfast:{same}"))?.slice(37)).toBe(hold("x", 2));
    // A copy of it says the same of what was handed over, and touches nobody's hold.
    const copy = await scripts.releaseStays(...holds);
    expect(copy).toEqual([
      String(await scripts.redis.get("holdfast:clock")),
      RELEASED,
      GONE,
      GONE,
      TAKEN,
      RELEASED,
    ]);
    expect(await scripts.holder()).toBe(hold("b"));
  });
});

describe("inspect", () => {
  it("shows the digit, and on request asks a holder that may be idle", async () => {
    expect(await scripts.run("inspect", 9)).toEqual([some, "", 0, 0, 0]);
    for (const told of [0, 1, 2] as const) {
      await scripts.acquire(hold("a"), "", 0, told);
      expect(await scripts.run("inspect", 9, `?${NONCE}`)).toEqual([some, hold("a"), some, some, told]);
      await scripts.redis.del(LOCK);
    }
    await scripts.acquire(hold("a"), "", 0, 2);
    await scripts.run("inspect", 9);
    expect(await scripts.messages()).toEqual([recall(hold("a"), `?${NONCE}`)]);
  });
});
