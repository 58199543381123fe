import { describe, expect, it } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { type CountedHold, CountedStage } from "./stage.ts";

// The keys of a counted resource: how long they live, and what the scripts do where one is gone, of
// another type, or full.

const stage = new CountedStage();
const PERMITS = 5;
const hold = (client: string, units = 1, lease = 30_000): CountedHold =>
  stage.permits(client, PERMITS, units, { lease });

describe("TTLs", () => {
  it("of the hash outlive every hold in it, and a short hold never shortens them", async () => {
    const long = hold("a");
    await long.try();
    await long.renew(600_000);
    await hold("b", 1, 1_000).try();
    expect(await stage.redis.pttl(stage.keys.hash)).toBeGreaterThan(600_000);
  });

  it("of the hash outlive its queue: the number of permits stays while a caller is waiting", async () => {
    const [holder, waiter] = [hold("a", 5, 1_000), hold("b", 5)];
    await holder.try();
    await waiter.queue();
    await waiter.recheck("1", 30_000);
    const [hash, queue] = [await stage.redis.pttl(stage.keys.hash), await stage.redis.pttl(stage.keys.queue)];
    expect(hash).toBeGreaterThanOrEqual(queue - 1_000);
    expect(queue).toBeGreaterThan(30_000);
  });

  it("only the clock is left after all holders and waiters have gone", async () => {
    const [holder, waiter] = [hold("a", 5), hold("b", 2)];
    await holder.try();
    await waiter.queue();
    await waiter.recheck();
    expect(await stage.redis.pttl(stage.keys.clients)).toBeGreaterThan(0);
    await holder.release();
    await waiter.release();
    await stage.redis.del(stage.keys.clients);
    expect(await stage.redis.keys("*")).toEqual([stage.keys.clock]);
  });
});

describe("manual deletion", () => {
  it("of the hash, not the queue: the next script grants its units to the head", async () => {
    const [holder, waiter, other] = [hold("a", 5), hold("b", 3), hold("c", 5)];
    await holder.try();
    await waiter.queue();
    await stage.redis.del(stage.keys.hash);
    expect(await other.try()).toMatchObject({ is: "held" });
    expect(await stage.grantees()).toEqual([waiter.id]);
    expect(await holder.renew()).toMatchObject({ is: "gone", ttl: 0 });
    expect(await holder.release()).toMatchObject({ is: "gone" });
  });

  it("of the queue, not the hash: a place is gone, and holds stay", async () => {
    const [holder, waiter] = [hold("a", 5), hold("b", 3)];
    await holder.try();
    await waiter.queue();
    await stage.redis.del(stage.keys.queue);
    expect(await waiter.recheck()).toMatchObject({ is: "gone" });
    expect(await stage.books()).toMatchObject({ used: 5 });
  });
});

describe("a key of another type", () => {
  it.each(["hash", "queue", "clients"] as const)("%s: every script ends without an effect", async (key) => {
    const [holder, waiter] = [hold("a", 2), hold("b", 4)];
    await holder.try();
    await waiter.queue();
    await stage.redis.del(stage.keys[key]);
    await stage.redis.rpush(stage.keys[key], "an element");
    const before = await stage.dump();
    for (const command of [
      () => holder.release(),
      () => holder.release(1),
      () => holder.try(),
      () => waiter.leave(),
      () => waiter.recheck(),
      () => hold("c").queue(),
      () => holder.yieldTo(hold("a")),
      () => stage.run("advance"),
      () => stage.setPermits(9, 1),
      () => stage.run("forceRelease", "", ""),
    ])
      await expect(command()).rejects.toThrow("WRONGTYPE");
    expect(await stage.dump()).toEqual(before);
    if (key === "hash") expect(await holder.renew()).toMatchObject({ is: "taken", ttl: 0 });
  });

  it("of the clock: a release works and loses no waiter; grants that need a token are refused, and the error gives the reason", async () => {
    const [holder, waiter] = [hold("a", 4), hold("b", 4)];
    await holder.try();
    await waiter.queue();
    await stage.redis.del(stage.keys.clock);
    await stage.redis.rpush(stage.keys.clock, "an element");
    expect(await holder.release()).toMatchObject({ is: "released" });
    expect(await stage.queued()).toEqual([waiter.id]);
    for (const command of [() => waiter.recheck(), () => hold("c").try(), () => hold("c").queue()])
      await expect(command()).rejects.toThrow("WRONGTYPE");
    expect(await stage.queued()).toEqual([waiter.id]);
    await stage.redis.del(stage.keys.clock);
    expect(await waiter.recheck()).toMatchObject({ is: "owner" });
  });
});

describe("the clock of tokens", () => {
  it.each(["9007199254740991", "10000000000000000", "inf"])("at its end, %s: so too", async (text) => {
    const [holder, waiter] = [hold("a", 4), hold("b", 4)];
    await holder.try();
    await waiter.queue();
    await stage.redis.set(stage.keys.clock, text);
    expect(await holder.release()).toMatchObject({ is: "released" });
    for (const command of [() => waiter.recheck(), () => hold("c").queue()])
      await expect(command()).rejects.toThrow("no larger token");
    expect(await stage.queued()).toEqual([waiter.id]);
    expect(await stage.redis.get(stage.keys.clock)).toBe(text);
    expect(await stage.redis.pttl(stage.keys.queue)).toBeGreaterThan(0);
    expect(await stage.redis.pttl(stage.keys.hash)).not.toBe(-1);
  });

  it.each([
    ["5", 6],
    ["999999999999999", 1e15],
    ["hello", 1e15],
    ["nan", 1e15],
    ["8000000000000000", 8_000_000_000_000_001],
  ] as const)("stored as %s yields tokens of 16 digits that are not below it", async (text, least) => {
    await stage.redis.set(stage.keys.clock, text);
    const answer = await hold("a").try();
    const token = answer.is === "owner" ? answer.token : 0;
    expect(token).toBeGreaterThanOrEqual(Math.max(least, 1e15));
    expect(await stage.redis.get(stage.keys.clock)).toBe(`${token}`);
  });
});

it(`more than ${codes.MOST_HOLDS} holds are refused, and do not wait`, async () => {
  const permits = 1_000_000;
  const crowd = Array.from({ length: codes.MOST_HOLDS }, () => stage.permits("a", permits));
  await Promise.all(crowd.map((one) => one.try()));
  const comer = stage.permits("b", permits);
  expect(await comer.queue()).toMatchObject({ is: "crowded" });
  expect(await stage.queued()).toEqual([]);
  await crowd[0]?.release();
  expect(await comer.queue()).toMatchObject({ is: "owner" });
});
