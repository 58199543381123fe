import { describe, expect, it } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { BareScripts, channel, entry, hold, LOCK, listed, NEVER, QUEUE } from "../support/bare-scripts.ts";

// What the scripts of the hand-off do for a lock whose holder is told of waiters, and may have nobody inside.

const { OWNER, MINE, HELD, RELEASED, BLOCKED } = codes;
const scripts = new BareScripts();
const some = expect.anything();
const NONCE = "host:1:0123456789abcdef.fedcba9876543210";
const recall = (of: string, word = "-"): string => `recall ${of} ${word} ${LOCK}`;
const digit = async (lock = LOCK): Promise<string | undefined> => (await scripts.redis.get(lock))?.[1];

describe("the digit of a lock", () => {
  it.each([0, 1, 2] as const)("is that of the command which acquires it: %s", async (told) => {
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

  it("is 0 after every grant, and a copy of the command that queued says so", async () => {
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

  it("changes nothing for clients that know none: such a holder can be released, left and force-released", async () => {
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

describe("whether a caller is waiting", () => {
  it("is part of each answer that the lock is the caller's own, and of the grant", async () => {
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

  it("is part of grants after dead entries too", async () => {
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

  it("goes to no holder that cannot be notified", async () => {
    await scripts.acquire(hold("a"));
    await scripts.acquire(hold("b"), entry(hold("b")));
    await scripts.recheck(hold("b"), "1");
    await scripts.acquire(hold("c"), entry(hold("c")), 0, 0, NONCE);
    expect(await scripts.messages()).toEqual([]);
  });

  it("contains nothing of the caller that sent it", async () => {
    await scripts.acquire(hold("a"), "", 0, 2);
    await scripts.acquire(hold("b"), entry(hold("b")));
    await scripts.recheck(hold("b"), "1");
    expect(await scripts.messages()).toHaveLength(2);
    for (const text of scripts.heard) expect(text).not.toContain(channel("b"));
  });

  it("goes to the hold alone if a label follows it", async () => {
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

describe("a try that recalls", () => {
  it("an idle holder queues whatever the queue contains, and sends its nonce", async () => {
    await scripts.acquire(hold("a"), "", 0, 2);
    await scripts.redis.zadd(QUEUE, 1, entry(hold("x"))); // dead for long
    expect(await scripts.acquire(hold("b"), entry(hold("b")), 0, 0, NONCE)).toEqual([HELD, some, some, 1, 2]);
    expect(await scripts.messages()).toEqual([recall(hold("a"), NONCE)]);
    await scripts.release(hold("a"));
    expect(await scripts.holder()).toBe(hold("b"));
  });

  it.each([0, 1] as const)("leaves no entry for a holder with digit %s", async (told) => {
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

  it("acquires a free lock, or hands it to a waiter, as any other", async () => {
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

  it("as part of a multi-lock sends no recall if the key has another value, or the holder is in use", async () => {
    for (const value of ["hello", `11 1800000000000000 1800000000000000 ${hold("a")}`]) {
      await scripts.redis.set(LOCK, value);
      expect(await scripts.behind(hold("b"), hold("z"), NONCE)).toEqual([BLOCKED, some]);
    }
    expect(await scripts.messages()).toEqual([]);
  });
});

describe("the first command of a connection, for a whole fleet", () => {
  it("takes the same arguments, followed by the channel that it checks", async () => {
    const first = (...args: (string | number)[]): Promise<unknown> =>
      scripts.run("firstAcquire", ...args, channel("any"));
    expect(listed(await first(hold("a"), 30_000, NEVER, "", 2))).toEqual([OWNER, some, some, 0]);
    const asking = [hold("b"), 30_000, NEVER, "1 3000 0 ", 0, 0, ""] as const;
    expect(await first(...asking, "")).toEqual([HELD, some, some, 0, 2]);
    expect(await first(...asking, NONCE)).toEqual([HELD, some, some, 0, 2]);
    const looking = [hold("b"), 30_000, 0, entry(hold("b")), 4_500, "1", 0, channel("any")] as const;
    expect(await scripts.run("firstRecheck", ...looking)).toEqual([HELD, some, some, 0, 2]);
    const told = [recall(hold("a")), recall(hold("a"), NONCE), recall(hold("a"))];
    expect(await scripts.messages()).toEqual(told);
  });
});
