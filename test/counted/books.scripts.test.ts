import { describe, expect, it } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { present } from "../support/present.ts";
import { until } from "../support/until.ts";
import { type Books, type CountedHold, CountedStage } from "./stage.ts";

// The books of a counted resource, whatever has become of them: they are reckoned anew at every scan.

const stage = new CountedStage();
const PERMITS = 5;
const hold = (client: string, units = 1, lease = 30_000): CountedHold =>
  stage.permits(client, PERMITS, units, { lease });

/** So the next script scans: something may be over, and the last scan is long ago. */
const mayScan = (): Promise<void> => stage.rewrite({ reap: 1, scanned: 1 });

describe("a scan", () => {
  it.each<[string, Partial<Books>]>([
    ["too many in use", { used: 5 }],
    ["too few in use", { used: 0 }],
    ["another number of holds", { holds: 77 }],
  ])("corrects what the books say: %s", async (_, wrong) => {
    await hold("a", 2).try();
    await hold("b", 1).try();
    await stage.rewrite(wrong);
    await mayScan();
    expect(await hold("c", 3).try()).toMatchObject({ is: "held" });
    expect(await stage.books()).toMatchObject({ used: 3, holds: 2, permits: PERMITS, source: "c" });
    expect(await hold("c", 2).try()).toMatchObject({ is: "owner" });
  });

  it("grants what it finds to waiters", async () => {
    const [holder, waiter] = [hold("a", 2), hold("b", 3)];
    await holder.try();
    await stage.rewrite({ used: 5 });
    await waiter.queue();
    await mayScan();
    await holder.try();
    expect(await stage.grantees()).toEqual([waiter.id]);
  });

  it("finds the number of permits and what others hold, also if the books said too little", async () => {
    for (const wrong of [{ used: 1 }, { used: 1, holds: 0 }, { used: 2, holds: 2 }]) {
      const [holder, other] = [hold("a", 2), hold("b", 2)];
      await holder.try();
      await other.try();
      if (wrong.holds !== 2) await stage.setPermits(4, 100);
      await stage.rewrite(wrong);
      await holder.release();
      expect(await stage.holders()).toEqual([other.id]);
      await mayScan();
      expect(await hold("c", 3).try()).toMatchObject({ is: wrong.holds === 2 ? "owner" : "held" });
      expect(await stage.books()).toMatchObject({ permits: wrong.holds === 2 ? PERMITS : 4 });
      await stage.redis.flushall();
    }
  });

  it("removes unreadable fields, and does not count them", async () => {
    const strange = [
      "",
      "x",
      "1q 1900000000000 0000005 1700000000000000",
      "2p 1900000000000 0000005 1700000000000000",
      "1p 190000000000 0000005 1700000000000000",
      "1p 1900000000000 -000005 1700000000000000",
      "1p           inf 0000005 1700000000000000",
    ];
    await hold("a", 2).try();
    for (const [i, field] of strange.entries())
      await stage.redis.hset(stage.keys.hash, hold(`x${i}`).id, field);
    await mayScan();
    expect(await hold("b", 3).try()).toMatchObject({ is: "owner", units: 3 });
    expect(await stage.redis.hlen(stage.keys.hash)).toBe(3);
    expect(await stage.books()).toMatchObject({ used: 5, holds: 2 });
  });

  it.each([
    ["no text", ""],
    ["other words", "hello"],
    ["too few", "1c 1 2 3"],
    ["no number", "1c 000000x 0000005 00001 1900000000000 1700000000000 0000000000000000 0000000000000000"],
    ["no field", null],
  ])("runs when the books cannot be read, or are gone: %s", async (_, text) => {
    const first = await stage.reader("a").try();
    if (text === null) await stage.redis.hdel(stage.keys.hash, "=");
    else await stage.redis.hset(stage.keys.hash, "=", text);
    expect(await stage.writer("b").try()).toMatchObject({ is: "held" });
    expect(await stage.books()).toMatchObject({ used: 1, holds: 1 });
    // The phase is that of the readers that are there.
    expect(await stage.reader("b").try()).toMatchObject({ token: first.is === "owner" ? first.token : 0 });
    expect(await stage.redis.pttl(stage.keys.hash)).toBeGreaterThan(30_000);
  });

  it("runs in a release that found no books; the first waiter supplies the number of permits", async () => {
    const [holder, lives, waiter] = [hold("a", 3), hold("b", 2), hold("c", 1)];
    await holder.try();
    await lives.try();
    await waiter.queue();
    await stage.redis.hdel(stage.keys.hash, "=");
    await holder.release();
    expect(await stage.grantees()).toEqual([waiter.id]);
    expect(await stage.books()).toMatchObject({ used: 3, holds: 2, permits: PERMITS });
  });

  it("does not run before a hold can have ended", async () => {
    await hold("a").try();
    const { scanned } = await stage.books();
    for (let i = 0; i < 20; i++) await hold("b").try();
    expect(await stage.books()).toMatchObject({ scanned });
  });

  it("rests for a fiftieth of a ms per hold, however short the leases are", async () => {
    const permits = 1_000_000;
    const crowd = Array.from({ length: 2_000 }, () => stage.permits("a", permits));
    await Promise.all(crowd.map((one) => one.try()));
    await mayScan();
    const brief = () => stage.permits("b", permits, 1, { lease: 1 }).try();
    await brief();
    let { scanned } = await stage.books();
    const scans: number[] = [];
    await until(async () => {
      await brief();
      const next = (await stage.books()).scanned;
      if (next !== scanned) scans.push(next - scanned);
      scanned = next;
      return scans.length > 3;
    });
    expect(Math.min(...scans)).toBeGreaterThanOrEqual(2_000 / 50);
  });

  it("runs in a re-check if the last one is long ago and a caller is waiting", async () => {
    const [holder, waiter] = [hold("a", 2), hold("b", 3)];
    await holder.try();
    await stage.rewrite({ used: 5 });
    await waiter.queue();
    expect(await waiter.recheck()).toMatchObject({ is: "held" });
    await stage.rewrite({ scanned: (await stage.millis()) - codes.SCAN_PERIOD });
    expect(await waiter.recheck()).toMatchObject({ is: "owner" });
  });

  it.each<[string, Partial<Books>, number]>([
    ["too many in use", { used: 5, reap: 1_900_000_000_000 }, 3],
    ["too few in use", { used: 0, reap: 1_900_000_000_000 }, 4],
  ])(
    "runs in a try if the last one is long ago, even with no caller waiting: %s",
    async (_, wrong, units) => {
      await hold("a", 2).try();
      await stage.rewrite(wrong);
      const tries = () => hold("b", units).try();
      const is = units === 3 ? "owner" : "held";
      // What the books say counts until then.
      if (units === 3) expect(await tries()).toMatchObject({ is: "held" });
      await stage.rewrite({ scanned: (await stage.millis()) - codes.SCAN_PERIOD });
      expect(await tries()).toMatchObject({ is });
      expect(await stage.books()).toMatchObject({ used: units === 3 ? 5 : 2, holds: units === 3 ? 2 : 1 });
    },
  );

  it("runs in a writer's try if the last one is long ago, even with no caller waiting", async () => {
    await stage.reader("a").try();
    await stage.reader("b").try();
    await stage.rewrite({
      used: 0,
      reap: 1_900_000_000_000,
      scanned: (await stage.millis()) - codes.SCAN_PERIOD,
    });
    expect(await stage.writer("c").try()).toMatchObject({ is: "held" });
    expect(await stage.books()).toMatchObject({ used: 2, holds: 2 });
  });

  it("runs although the server's clock went back since the last one", async () => {
    const crashed = hold("a", 5);
    await crashed.try();
    await stage.over(crashed);
    await stage.rewrite({ scanned: (await stage.millis()) + 3_600_000 });
    expect(await hold("b", 5).try()).toMatchObject({ is: "owner" });
  });

  it("runs in a re-check too although the clock went back, and waiters do not come an hour later", async () => {
    const [holder, waiter] = [hold("a", 2), hold("b", 4)];
    await holder.try();
    const anHourLater = async () => ({ used: 5, scanned: (await stage.millis()) + 3_600_000 });
    await stage.rewrite(await anHourLater());
    const answer = await waiter.queue();
    expect(present(answer.is === "held" ? answer.ttl : undefined)).toBeLessThanOrEqual(30_000);
    await stage.redis.hdel(stage.keys.hash, holder.id);
    await stage.rewrite(await anHourLater());
    expect(await waiter.recheck()).toMatchObject({ is: "owner" });
  });

  it("of more holds than one command can name runs all the same, and frees the units of expired holds", async () => {
    const permits = 1_000_000;
    const crowd = Array.from({ length: 9_000 }, () => stage.permits("a", permits, 100, { lease: 2_000 }));
    await Promise.all(crowd.map((one) => one.try()));
    await until(async () => (await stage.holders()).length === 0, { what: "their ends" });
    expect(await stage.permits("b", permits, permits).try()).toMatchObject({ is: "owner", units: permits });
    expect(await stage.redis.hlen(stage.keys.hash)).toBe(2);
  });
});

it("a script refuses books of another format, and does nothing", async () => {
  const holder = hold("a", 2);
  await holder.try();
  const foreign = "2c 0000002 0000005 00001 1900000000000 1700000000000 0000000000000000 0000000000000000";
  await stage.redis.hset(stage.keys.hash, "=", foreign);
  const before = await stage.dump();
  for (const command of [
    () => hold("b").try(),
    () => hold("b").queue(),
    () => holder.release(),
    () => holder.recheck(),
    () => holder.leave(),
    () => stage.inspect(),
    () => stage.run("advance"),
    () => stage.setPermits(3, 1),
    () => stage.run("forceRelease", "", ""),
  ])
    await expect(command()).rejects.toThrow("LOCKFORMAT 2");
  expect(await stage.dump()).toEqual(before);
});

it("a script sets the next reap to the earliest end, or sooner", async () => {
  const [long, short, longer] = [hold("a", 1, 30_000), hold("b", 1, 10_000), hold("c", 1, 60_000)];
  for (const one of [long, short, longer]) await one.try();
  const earliest = async (): Promise<number> => {
    const { "=": _, ...holds } = await stage.redis.hgetall(stage.keys.hash);
    return Math.min(...Object.values(holds).map((field) => Number(field.slice(3, 16))));
  };
  expect((await stage.books()).reap).toBe(await earliest());
  await short.renew(90_000);
  expect((await stage.books()).reap).toBeLessThanOrEqual(await earliest());
  await mayScan();
  await hold("d").try();
  expect((await stage.books()).reap).toBe(await earliest());
});
