import { describe, expect, it } from "vitest";
import { codes } from "../../src/redis/lua.generated.ts";
import { BareScripts, CLOCK, channel, entry, hold, LOCK, NEVER, QUEUE } from "../support/bare-scripts.ts";

// What the scripts of the hand-off do for a lock whose holder is told of waiters, and may have nobody inside.

const { OWNER, MINE, HELD, GONE, RELEASED, TAKEN, BLOCKED, RENEWED } = codes;
const scripts = new BareScripts();
const some = expect.anything();
const NONCE = "host:1:0123456789abcdef.fedcba9876543210";
const recall = (of: string, word = "-"): string => `recall ${of} ${word} ${LOCK}`;
const digit = async (lock = LOCK): Promise<string | undefined> => (await scripts.redis.get(lock))?.[1];

describe("the digit of a lock", () => {
  it.each([0, 1, 2] as const)("is what the command names that takes it: %s", async (told) => {
    const isOwner = [OWNER, some, some, 0];
    expect(await scripts.acquire(hold("a"), "", 0, told)).toEqual(isOwner);
    expect(await digit()).toBe(`${told}`);
    // By the rules for what is not common, too: a dead waiter stands before it.
    await scripts.redis.del(LOCK);
    await scripts.redis.zadd(QUEUE, 1, entry(hold("x")));
    expect(await scripts.acquire(hold("b"), "", 0, told)).toEqual(isOwner);
    expect(await digit()).toBe(`${told}`);
    // By a re-check, and by a yield to itself.
    await scripts.acquire(hold("c"), entry(hold("c")));
    await scripts.redis.del(LOCK);
    expect(await scripts.recheck(hold("c"), "1", 4_500, entry(hold("c")), told)).toEqual(isOwner);
    expect(await digit()).toBe(`${told}`);
    expect(await scripts.yield(hold("c"), hold("c", 2), told)).toEqual(isOwner);
    expect([await scripts.holder(), await digit()]).toEqual([hold("c", 2), `${told}`]);
  });

  it("is 0 behind every grant, and a copy of the command that queued says so", async () => {
    await scripts.acquire(hold("a"), "", 0, 2);
    await scripts.acquire(hold("b"), entry(hold("b")), 0, 2);
    await scripts.release(hold("a"));
    expect([await scripts.holder(), await digit()]).toEqual([hold("b"), "0"]);
    expect(await scripts.acquire(hold("b"), entry(hold("b")), 0, 2)).toEqual([
      MINE,
      some,
      some,
      30_000,
      0,
      0,
    ]);
    expect(await digit()).toBe("0");
  });

  it("changes nothing for those of a client that knows none: such a holder is released, left and taken by force", async () => {
    for (const [script, args, answer] of [
      ["release", [hold("a"), 1], RELEASED],
      ["leave", [hold("a"), ""], RELEASED],
      ["forceRelease", ["", ""], 1],
    ] as const) {
      await scripts.acquire(hold("a"), "", 0, 2);
      expect(await scripts.run(script, ...args)).toBe(answer);
      expect(await scripts.redis.exists(LOCK)).toBe(0);
    }
  });
});

describe("does somebody wait?", () => {
  it("is said by every answer that the lock is one's own, and by the grant", async () => {
    await scripts.acquire(hold("a"));
    for (const client of ["b", "c"]) await scripts.acquire(hold(client), entry(hold(client)));
    expect(await scripts.acquire(hold("a"))).toEqual([MINE, some, some, 30_000, 1, 0]);
    await scripts.release(hold("a"));
    expect(await scripts.recheck(hold("b"), "1")).toEqual([MINE, some, some, 30_000, 1, 0]);
    await scripts.release(hold("b"));
    expect(await scripts.recheck(hold("c"), "1")).toEqual([MINE, some, some, 30_000, 0, 0]);
    const grants = (await scripts.messages()).map((text) => text.split(" ").slice(4, 6));
    expect(grants).toEqual([
      ["1", hold("b")],
      ["0", hold("c")],
    ]);
    // The waiter that finds the lock free, with one behind it.
    for (const client of ["a", "b"]) await scripts.acquire(hold(client, 2), entry(hold(client, 2)));
    await scripts.redis.del(LOCK);
    expect(await scripts.recheck(hold("a", 2), "1", 4_500, entry(hold("a", 2)))).toEqual([
      OWNER,
      some,
      some,
      1,
    ]);
  });

  it("is said by the grants behind dead entries too", async () => {
    await scripts.acquire(hold("a"));
    for (const client of ["x", "b", "c"]) await scripts.acquire(hold(client), entry(hold(client)));
    await scripts.release(hold("a"));
    expect((await scripts.messages())[0]).toMatch(new RegExp(`^grant \\d+ \\d+ 3000 1 ${hold("b")} `));
  });
});

describe("a recall", () => {
  it.each([1, 2] as const)(
    "goes to a holder with digit %s when the first waiter queues, once",
    async (told) => {
      await scripts.acquire(hold("a"), "", 0, told);
      expect(await scripts.acquire(hold("b"))).toEqual([HELD, some, some, -1, told]); // a try tells nobody
      expect(await scripts.messages()).toEqual([]);
      expect(await scripts.acquire(hold("b"), entry(hold("b")))).toEqual([HELD, some, some, 0, told]);
      expect(await scripts.acquire(hold("c"), entry(hold("c")))).toEqual([HELD, some, some, 1, told]);
      expect(await scripts.messages()).toEqual([recall(hold("a"))]);
      // A re-check, from any place: the first waiter may have crashed, or its recall is lost.
      expect(await scripts.recheck(hold("c"), "1")).toEqual([HELD, some, some, 1, told]);
      expect(await scripts.messages()).toEqual([recall(hold("a")), recall(hold("a"))]);
    },
  );

  it("goes to no holder that is not told", async () => {
    await scripts.acquire(hold("a"));
    await scripts.acquire(hold("b"), entry(hold("b")));
    await scripts.recheck(hold("b"), "1");
    await scripts.acquire(hold("c"), entry(hold("c")), 0, 0, NONCE);
    expect(await scripts.messages()).toEqual([]);
  });

  it("names nothing of the asker's", async () => {
    await scripts.acquire(hold("a"), "", 0, 2);
    await scripts.acquire(hold("b"), entry(hold("b")));
    await scripts.recheck(hold("b"), "1");
    expect(await scripts.messages()).toHaveLength(2);
    for (const text of scripts.heard) expect(text).not.toContain(channel("b"));
  });

  it("goes to the hold alone where a label stands behind it", async () => {
    await scripts.redis.set(LOCK, `12 1800000000000007 1800000000000001 ${hold("a")} nightly`);
    await scripts.acquire(hold("b"), entry(hold("b")));
    expect(await scripts.messages()).toEqual([recall(hold("a"))]);
  });

  it("that cannot be published costs the waiter nothing", async () => {
    await scripts.redis.set(LOCK, `12 1800000000000007 1800000000000001 x`);
    expect(await scripts.acquire(hold("b"), entry(hold("b")))).toEqual([HELD, some, -1, 0, 2]);
    expect(await scripts.recheck(hold("b"), "1")).toEqual([HELD, some, -1, 0, 2]);
  });
});

describe("a try that asks", () => {
  it("an idle holder queues whatever the queue holds, and recalls it with its nonce", async () => {
    await scripts.acquire(hold("a"), "", 0, 2);
    await scripts.redis.zadd(QUEUE, 1, entry(hold("x"))); // dead for long
    expect(await scripts.acquire(hold("b"), entry(hold("b")), 0, 0, NONCE)).toEqual([HELD, some, some, 1, 2]);
    expect(await scripts.messages()).toEqual([recall(hold("a"), NONCE)]);
    await scripts.release(hold("a"));
    expect(await scripts.holder()).toBe(hold("b"));
  });

  it.each([0, 1] as const)("leaves no entry behind a holder with digit %s", async (told) => {
    await scripts.acquire(hold("a"), "", 0, told);
    expect(await scripts.acquire(hold("b"), entry(hold("b")), 0, 0, NONCE)).toEqual([
      HELD,
      some,
      some,
      -1,
      told,
    ]);
    expect([await scripts.messages(), await scripts.redis.exists(QUEUE)]).toEqual([[], 0]);
  });

  it("takes a free lock, or hands it to a waiter, as any other", async () => {
    expect(await scripts.acquire(hold("a"), entry(hold("a")), 0, 1, NONCE)).toEqual([OWNER, some, some, 0]);
    await scripts.acquire(hold("b"), entry(hold("b")));
    await scripts.redis.del(LOCK);
    expect(await scripts.acquire(hold("c"), entry(hold("c")), 0, 0, NONCE)).toEqual([
      HELD,
      some,
      3_000,
      -1,
      0,
    ]);
    expect([await scripts.holder(), await scripts.redis.exists(QUEUE)]).toEqual([hold("b"), 0]);
  });

  it("as part of a multi-lock recalls an idle holder, and queues nothing", async () => {
    await scripts.acquire(hold("a"), "", 0, 2);
    expect(await scripts.behind(hold("b"), hold("z"), "")).toEqual([BLOCKED, some]);
    expect(await scripts.messages()).toEqual([]);
    expect(await scripts.behind(hold("b"), hold("z"), NONCE)).toEqual([BLOCKED, some]);
    await scripts.redis.set("holdfast:{y}", `10 1800000000000000 1800000000000000 ${hold("z")}`);
    expect(await scripts.behind(hold("b"), hold("z"), NONCE)).toEqual([HELD, some, some, -1, 2]);
    expect(await scripts.messages()).toEqual([recall(hold("a"), NONCE), recall(hold("a"), NONCE)]);
    expect(await scripts.redis.exists(QUEUE)).toBe(0);
  });

  it("as part of a multi-lock recalls nobody where something else stands in the key, or a holder that is not idle", async () => {
    for (const value of ["hello", `11 1800000000000000 1800000000000000 ${hold("a")}`]) {
      await scripts.redis.set(LOCK, value);
      expect(await scripts.behind(hold("b"), hold("z"), NONCE)).toEqual([BLOCKED, some]);
    }
    expect(await scripts.messages()).toEqual([]);
  });
});

describe("the same for a whole fleet: a first command of a connection", () => {
  it("takes the same arguments, with the channel that it looks at behind them", async () => {
    const first = (...args: (string | number)[]): Promise<unknown> =>
      scripts.run("firstAcquire", ...args, channel("any"));
    expect(await first(hold("a"), 30_000, NEVER, 0, "", 2, "", "")).toEqual([OWNER, some, some, 0]);
    const asking = [hold("b"), 30_000, NEVER, 0, entry(hold("b")), 0, ""] as const;
    expect(await first(...asking, "")).toEqual([HELD, some, some, 0, 2]);
    expect(await first(...asking, NONCE)).toEqual([HELD, some, some, 0, 2]);
    const looking = [hold("b"), 30_000, 0, entry(hold("b")), 4_500, "1", 0, channel("any")] as const;
    expect(await scripts.run("firstRecheck", ...looking)).toEqual([HELD, some, some, 0, 2]);
    const told = [recall(hold("a")), recall(hold("a"), NONCE), recall(hold("a"))];
    expect(await scripts.messages()).toEqual(told);
  });
});

describe("renew-stays", () => {
  const ttl = 3_000;

  it("raises the TTL, never shortens it, and writes the digit in place", async () => {
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

  it("answers for each of many: ours, wanted, nobody's, another's, and what is no lock", async () => {
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
  ] as const)("raises a clock that is %s: every later token is above", async (_, text, isRaised) => {
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

  it("of a full Redis raises TTLs all the same, and says what was refused", async () => {
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
  it("says the digit, and asks only a holder that may have nobody inside, when it is told to ask", async () => {
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
