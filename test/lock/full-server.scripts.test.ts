import { afterEach, describe, expect } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { BareScripts, CLIENTS, channel, entry, hold, LOCK, QUEUE } from "../support/bare-scripts.ts";
import { needs } from "../support/script-server.ts";

// The hand-off's scripts on a full Redis, which evicts nothing: whatever ends or is kept goes on, and
// what is new is refused with nothing done.

const it = needs("maxmemory");
const { GONE, HELD, OWNER, RELEASED } = codes;
const scripts = new BareScripts();
const some = expect.anything();

/** `a` holds the lock, and these wait for it, the first one first. */
async function fullBehind(...clients: readonly string[]): Promise<void> {
  await scripts.acquire(hold("a"));
  for (const client of clients) await scripts.acquire(hold(client), entry(hold(client)));
  await scripts.redis.config("SET", "maxmemory", "1");
}
const queue = (): Promise<string[]> => scripts.redis.zrange(QUEUE, 0, "-1", "WITHSCORES");
const places = (): Promise<string[]> => scripts.redis.zrange(QUEUE, 0, "-1");

afterEach(() => scripts.redis.config("SET", "maxmemory", "0"));

describe("on a full Redis", () => {
  it("a new place is refused", async () => {
    await fullBehind();
    await expect(scripts.acquire(hold("b"), entry(hold("b")))).rejects.toThrow("OOM");
    expect(await places()).toEqual([]);
  });

  it("a copy of the command that queued finds its place", async () => {
    await fullBehind("b", "c");
    const before = await queue();
    expect(await scripts.acquire(hold("b"), entry(hold("b")))).toEqual([HELD, some, some, 0, 0]);
    expect(await queue()).toEqual(before);
  });

  it("a re-check keeps its place, and takes a lock that has become free", async () => {
    await fullBehind("b", "c");
    const before = await queue();
    for (let i = 0; i < 2; i++)
      expect(await scripts.recheck(hold("b"), "1")).toEqual([HELD, some, some, 0, 0]);
    expect(await queue()).toEqual(before);
    expect(await scripts.redis.zrange(CLIENTS, 0, "-1")).toEqual([`1${channel("b")}`]);
    await scripts.redis.del(LOCK);
    expect(await scripts.recheck(hold("b"), "1")).toEqual([OWNER, some, some, 1]);
  });

  it("a yield queues after the other waiters, and a release and a leave hand over", async () => {
    await fullBehind("b", "c");
    expect(await scripts.yield(hold("a"), hold("a", 2))).toEqual([HELD, some, 3_000, 1]);
    expect([await scripts.holder(), await places()]).toEqual([
      hold("b"),
      [entry(hold("c")), entry(hold("a", 2))],
    ]);
    expect(await scripts.release(hold("b"))).toBe(RELEASED);
    expect(await scripts.run("leave", hold("c"), "")).toBe(RELEASED);
    expect([await scripts.holder(), await places()]).toEqual([hold("a", 2), []]);
  });

  it("a leave removes a place, and a force-release hands over", async () => {
    await fullBehind("b", "c");
    expect(await scripts.run("leave", hold("b"), entry(hold("b")))).toBe(GONE);
    expect(await places()).toEqual([entry(hold("c"))]);
    expect(await scripts.run("forceRelease", "", "")).toBe(1);
    expect([await scripts.holder(), await places()]).toEqual([hold("c"), []]);
  });
});
