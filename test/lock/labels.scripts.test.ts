import { describe, expect, it } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { BareScripts, CLIENTS, channel, entry, hold, LOCK, QUEUE } from "../support/bare-scripts.ts";

// A hold with a label, as the scripts of the hand-off know it. What callers see of labels:
// test/lock/labels-and-holders.test.ts.

const { OWNER, MINE, HELD, GONE, RELEASED, TAKEN, RENEWED } = codes;
const scripts = new BareScripts();
const some = expect.anything();

/** As its client names it. */
const labelled = (client: string, number = 1): string => `${hold(client, number)} nightly%20job`;
const queued = (): Promise<string[]> => scripts.redis.zrange(QUEUE, 0, "-1");

describe("a hold with a label", () => {
  it("is acquired, found again, renewed and released, as any other", async () => {
    const mine = labelled("a");
    expect(await scripts.acquire(mine)).toEqual([OWNER, some, some, 0]);
    expect(await scripts.holder()).toBe(mine);
    expect(await scripts.acquire(mine)).toEqual([MINE, some, some, some, 0, 0]);
    expect(await scripts.recheck(mine, "1")).toEqual([MINE, some, some, some, 0, 0]);
    const renewed = await scripts.renewStays({ hold: mine, ttl: 40_000, told: 1 });
    expect(renewed).toEqual([some, RENEWED, 40_000, 0, 1]);
    // Without its label it is another one.
    expect(await scripts.release(hold("a"))).toBe(TAKEN);
    expect(await scripts.release(mine)).toBe(RELEASED);
    expect(await scripts.redis.exists(LOCK)).toBe(0);
  });

  it("waits, is kept by its re-checks, and is granted by a message that names it without its label", async () => {
    await scripts.acquire(hold("a"));
    const waits = labelled("b");
    expect(await scripts.acquire(waits, entry(waits))).toEqual([HELD, some, some, 0, 0]);
    expect(await scripts.recheck(waits, "1")).toEqual([HELD, some, some, 0, 0]);
    expect(await scripts.redis.zrange(CLIENTS, 0, "-1")).toEqual([`1${channel("b")}`]);
    expect(await scripts.release(hold("a"))).toBe(RELEASED);
    expect(await scripts.holder()).toBe(waits);
    const [, , , , , named, key] = ((await scripts.messages())[0] ?? "").split(" ");
    expect([named, key]).toEqual([hold("b"), LOCK]);
    expect(await scripts.recheck(waits, "1")).toEqual([MINE, some, some, some, 0, 0]);
  });

  it("that queues without a subscription revokes what its client's re-checks stated", async () => {
    await scripts.acquire(hold("a"));
    await scripts.acquire(labelled("b"), entry(labelled("b")));
    await scripts.recheck(labelled("b"), "1");
    await scripts.acquire(labelled("b", 2), entry(labelled("b", 2), 0));
    expect(await scripts.redis.zrange(CLIENTS, 0, "-1")).toEqual([`0${channel("b")}`]);
  });

  it("yields to a waiter, and queues anew", async () => {
    await scripts.acquire(labelled("a"));
    await scripts.acquire(hold("b"), entry(hold("b")));
    expect(await scripts.yield(labelled("a"), labelled("a", 2))).toEqual([HELD, some, 3_000, 0]);
    expect([await scripts.holder(), await queued()]).toEqual([hold("b"), [entry(labelled("a", 2))]]);
    expect(await scripts.release(hold("b"))).toBe(RELEASED);
    expect(await scripts.holder()).toBe(labelled("a", 2));
  });

  it("that is dead is skipped, and so is one with an unreadable label", async () => {
    await scripts.acquire(hold("a"));
    await scripts.acquire(labelled("dead"), entry(labelled("dead")));
    await scripts.redis.zadd(QUEUE, 1, "1 3000 0  no hold at all", 2, `1 3000 0 ${hold("x")}\nlabel`);
    await scripts.acquire(labelled("c"), entry(labelled("c")));
    expect(await scripts.release(hold("a"))).toBe(RELEASED);
    expect([await scripts.holder(), await queued()]).toEqual([labelled("c"), []]);
  });

  it("is left by its id alone, in the lock and in the queue; another one with the same beginning is not", async () => {
    await scripts.acquire(labelled("a"));
    await scripts.acquire(labelled("b"), entry(labelled("b")));
    expect(await scripts.run("leave", hold("b"), entry(labelled("b")))).toBe(GONE);
    expect(await queued()).toEqual([]);
    expect(await scripts.run("leave", hold("a").slice(0, -1), "")).toBe(GONE);
    expect(await scripts.run("leave", hold("a"), "")).toBe(RELEASED);
    expect(await scripts.redis.exists(LOCK)).toBe(0);
  });

  it("is recognized by later members of a multi-lock", async () => {
    await scripts.redis.set("holdfast:{y}", `10 ${"1".repeat(16)} ${"1".repeat(16)} ${labelled("a", 2)}`);
    expect(await scripts.behind(labelled("a"), labelled("a", 2))).toEqual([OWNER, some, some, 0]);
  });

  it("is found and force-released by its id, and only with the token that is given", async () => {
    await scripts.acquire(labelled("a"), "", 0, 1);
    await scripts.acquire(labelled("b"), entry(labelled("b")));
    expect((await scripts.messages()).at(-1)).toBe(`recall ${hold("a")} - ${LOCK}`);
    const token = (await scripts.redis.get(LOCK))?.slice(3, 19) ?? "";
    expect(await scripts.run("forceRelease", "bob", "1".repeat(16))).toBe(0);
    expect(await scripts.holder()).toBe(labelled("a"));
    expect(await scripts.run("forceRelease", "bob", token)).toBe(1);
    expect((await scripts.messages()).at(-1)).toBe(`revoked ${hold("a")} ${LOCK} bob`);
    // A caller that saw the first one does not end the next.
    expect(await scripts.run("forceRelease", "bob", token)).toBe(0);
    expect(await scripts.holder()).toBe(labelled("b"));
  });

  it("is shown with its token and its ticket", async () => {
    await scripts.acquire(labelled("a"));
    await scripts.acquire(labelled("b"), entry(labelled("b")));
    const shown = [some, labelled("a"), some, some, 0, labelled("b"), expect.stringMatching(/^\d{16}$/)];
    expect(await scripts.run("inspect", 9)).toEqual(shown);
    expect(await scripts.run("inspect", 0)).toEqual(shown.slice(0, 5));
  });
});
