import { describe, expect, it } from "vitest";
import { PATIENCE_MIN } from "../../src/defaults.ts";
import { codes } from "../../src/redis/codes.generated.ts";
import { BareScripts, CLOCK, entry, hold, LOCK, NEVER, QUEUE } from "../support/bare-scripts.ts";

// The hand-off's scripts where nothing is unusual: short answers, and no more commands than that takes.

const { OWNER, MINE, HELD, STALE } = codes;
const scripts = new BareScripts();
const some = expect.anything();

describe("a free lock without a waiter", () => {
  it("is answered with one text, the time that is also the token; any other outcome is answered in full", async () => {
    const args = [hold("a"), 30_000, NEVER];
    expect(await scripts.run("acquire", ...args)).toMatch(/^\d{16}$/);
    expect(await scripts.redis.get(LOCK)).toBe(
      `10 ${await scripts.redis.get(CLOCK)} ${await scripts.redis.get(CLOCK)} ${hold("a")}`,
    );
    expect(await scripts.run("acquire", ...args)).toEqual([MINE, some, some, 30_000, 0, 0]);
    await scripts.release(hold("a"));
    await scripts.redis.set(CLOCK, "8000000000000000");
    expect(await scripts.run("acquire", ...args)).toEqual([OWNER, some, "8000000000000001", 0]);
  });

  it("reserves tokens for local hand-offs, also into the next second", async () => {
    let isOver = false;
    for (let round = 0; !isOver; round++) {
      const owner = hold("a", round + 1);
      const [, , token] = (await scripts.acquire(owner, "", 9_000)) as number[];
      expect(await scripts.redis.get(CLOCK)).toBe(String(Number(token) + 9_000));
      isOver = Number(token) % 1_000_000 >= 991_000;
      await scripts.release(owner);
      // The next token follows the time again, and not this clock.
      await scripts.redis.del(CLOCK);
    }
  });

  it("after the deadline is not acquired, however many digits the time has", async () => {
    for (const late of [1, (await scripts.micros()) - 1])
      expect(await scripts.run("acquire", hold("a"), 30_000, late)).toEqual([STALE, some]);
    expect(await scripts.redis.exists(LOCK, CLOCK)).toBe(0);
  });
});

it.each(["tries", "would queue"])(
  "a free lock with a waiter goes to the waiter, and not to a caller that %s",
  async (how) => {
    await scripts.acquire(hold("a"));
    await scripts.acquire(hold("b"), entry(hold("b")));
    await scripts.redis.del(LOCK);
    const place = how === "tries" ? "" : entry(hold("c"));
    expect(await scripts.acquire(hold("c"), place)).toEqual([HELD, some, 3_000, place === "" ? -1 : 0, 0]);
    expect(await scripts.holder()).toBe(hold("b"));
  },
);

it("a queue's key lasts for twice the patience, and always has a TTL", async () => {
  await scripts.acquire(hold("a"));
  for (const client of ["b", "c"]) {
    await scripts.acquire(hold(client), entry(hold(client)));
    const left = await scripts.redis.pttl(QUEUE);
    expect(left).toBeLessThanOrEqual(2 * PATIENCE_MIN);
    expect(left).toBeGreaterThan(PATIENCE_MIN);
  }
});
