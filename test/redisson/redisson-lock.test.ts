import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { Lock, UnfencedLease } from "../../src/index.ts";
import { redissonLock } from "../../src/redisson.ts";
import { channelOf, JavaThread } from "../contract/java.ts";
import { awake } from "../support/awake.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { until } from "../support/until.ts";

describe("redissonLock beside Java", () => {
  const parties = new Parties();
  let party: Party;
  let java: JavaThread;
  beforeAll(async () => {
    party = await parties.join();
    java = new JavaThread((await parties.join()).redis);
  });
  afterAll(parties.close);

  function fresh(name = freshName("java")): { name: string; lock: Lock<UnfencedLease> } {
    return { name, lock: redissonLock(party.locks, name) };
  }
  const untilWaiting = (name: string) =>
    until(async () => Number((await party.redis.pubsub("NUMSUB", channelOf(name)))[1]) > 0);

  /** What is published on a lock's channel, as everybody hears it. */
  async function listenTo(name: string): Promise<string[]> {
    const messages: string[] = [];
    const subscriber = party.redis.duplicate();
    onTestFinished(() => subscriber.disconnect());
    subscriber.on("message", (_, message) => messages.push(message));
    await subscriber.subscribe(channelOf(name));
    return messages;
  }

  it.each(["", "{tag}"])("writes what Java reads: hash, owner, count, TTL (name with '%s')", async (tag) => {
    const { name, lock } = fresh(tag + freshName("java"));
    const messages = await listenTo(name);
    const lease = await lock.lock();
    const hash = await party.redis.hgetall(name);
    expect(hash).toEqual({ [Object.keys(hash)[0] ?? ""]: "1" });
    expect(Object.keys(hash)[0]).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9a-z]{21}$/);
    const ttl = await party.redis.pttl(name);
    expect(ttl).toBeGreaterThan(29_000);
    expect(ttl).toBeLessThanOrEqual(30_000);
    expect(await java.tryLock(name)).toBeGreaterThan(29_000);
    expect(await java.unlock(name)).toBe(null);
    await lease.unlock();
    await until(() => messages.length > 0);
    expect([messages, await party.redis.exists(name)]).toEqual([["0"], 0]);
    const leftovers = async () =>
      (await party.redis.keys(`redisson_unlock_latch:*${name.slice(-36)}*`)).length;
    await until(async () => (await leftovers()) === 0, { what: "the unlock latch to be deleted" });
  });

  it("shows Java its hold count, and frees the lock only at the end", async () => {
    const { name, lock } = fresh();
    const messages = await listenTo(name);
    const counts: string[][] = [];
    const look = async () => void counts.push(await party.redis.hvals(name));
    await party.locks.scope(async () => {
      const outer = await lock.lock();
      await look();
      const inner = await lock.lock();
      await look();
      await inner.unlock();
      await look();
      expect(messages).toEqual([]);
      await outer.unlock();
      await look();
    });
    expect(counts).toEqual([["1"], ["2"], ["1"], []]);
    await until(() => messages.length === 1);
  });

  it("gives every hold an owner of its own, all of one client", async () => {
    const owners: string[] = [];
    const { name, lock } = fresh();
    for (let i = 0; i < 3; i++)
      await lock.withLock(async () => void owners.push(...(await party.redis.hkeys(name))));
    expect(new Set(owners).size).toBe(3);
    expect(new Set(owners.map((owner) => owner.split(":")[0])).size).toBe(1);
  });

  it("waits for Java, and is woken by its unlock", async () => {
    const { name, lock } = fresh();
    expect(await java.tryLock(name)).toBe(null);
    expect(await lock.tryLock()).toBe(null);
    expect((await lock.inspect()).holder?.id).toBe(java.owner);
    expect(await java.tryLock(name)).toBe(null); // re-entered: its first unlock wakes nobody
    const waiter = lock.lock();
    await untilWaiting(name);
    expect(await java.unlock(name)).toBe(0);
    expect(await lock.tryLock(50)).toBe(null);
    expect(await java.unlock(name)).toBe(1);
    const unlocked = awake();
    const lease = await waiter;
    expect(awake() - unlocked).toBeLessThan(2_000); // its TTL would have been 30 s
    expect(await java.tryLock(name)).toBeGreaterThan(0);
    await lease.unlock();
    expect(await java.tryLock(name)).toBe(null);
    await java.unlock(name);
  });

  it("stays on no channel if its waiter left before SUBSCRIBE was acknowledged", async () => {
    const { name, lock } = fresh();
    await java.tryLock(name);
    await lock.tryLock(100); // the subscriber connection is open now
    await java.unlock(name);
    const lease = await lock.lock();
    const controller = new AbortController();
    const waiter = lock.lock({ signal: controller.signal });
    controller.abort();
    await expect(waiter).rejects.toBe(controller.signal.reason);
    await lease.unlock();
    await until(async () => Number((await party.redis.pubsub("NUMSUB", channelOf(name)))[1]) === 0, {
      timeout: 3_000,
      what: "the subscription to end",
    });
  });

  it("waits for a lock without TTL, and never leaves its own without", async () => {
    const { name, lock } = fresh();
    await party.redis.hset(name, java.owner, 1);
    expect(await lock.tryLock(50)).toBe(null);
    expect(await lock.inspect()).toMatchObject({
      holder: { id: java.owner },
      token: null,
      remaining: Number.POSITIVE_INFINITY,
      waiters: null,
    });
    const waiter = lock.lock();
    await untilWaiting(name);
    expect(await java.unlock(name)).toBe(1);
    const lease = await waiter;
    expect(await party.redis.pttl(name)).toBeGreaterThan(29_000);
    await lease.unlock();
  });

  it("is handed off in memory if asked to: one owner with a count of 1, and no message until the end", async () => {
    const { name } = fresh();
    const lock = redissonLock(party.locks, name, { localHandoffs: 16 });
    const messages = await listenTo(name);
    const seen: { hash: Record<string, string>; ttl: number }[] = [];
    const look = async () =>
      void seen.push({ hash: await party.redis.hgetall(name), ttl: await party.redis.pttl(name) });
    await Promise.all(Array.from({ length: 12 }, () => lock.withLock(look)));
    const owners = new Set(seen.flatMap(({ hash }) => Object.keys(hash)));
    expect(seen.map(({ hash }) => Object.values(hash))).toEqual(Array(12).fill(["1"]));
    for (const { ttl } of seen) expect(ttl).toBeGreaterThan(15_000);
    // A pass comes no later than 25 ms after the grant; a busy machine needs more of them.
    expect(owners.size).toBeLessThan(12);
    await until(() => messages.length === owners.size);
  });

  it("the end of a scope ends a lease without a command, and the next caller does not get its count", async () => {
    const lock = redissonLock(party.locks, freshName(), { localHandoffs: 16 });
    const told: Error[] = [];
    const hear = (error: Error) => told.push(error);
    party.locks.on("error", hear);
    const count = async () => Object.values(await party.redis.hgetall(lock.name));
    let next: Promise<string[]> | undefined;
    await lock.withLock(async () => {
      await party.locks.scope(() => lock.lock());
      expect([told.length, await count()]).toEqual([1, ["2"]]);
      next = party.locks.outside(() => lock.withLock(count));
    });
    expect(await next).toEqual(["1"]);
    party.locks.off("error", hear);
  });

  it("extends the TTL for a caller that wants more than is left, and does not keep Java out for one that wants less", async () => {
    const { name, lock } = fresh();
    const ttls: number[] = [];
    const look = async () => void ttls.push(await party.redis.pttl(name));
    await Promise.all([2_000, 20_000, 1_000].map((lease) => lock.withLock({ lease }, look)));
    const [first = 0, longer = 0, shorter = 0] = ttls;
    expect(first).toBeLessThanOrEqual(2_000);
    expect(longer).toBeGreaterThan(18_000);
    expect(longer).toBeLessThanOrEqual(20_000);
    expect(shorter).toBeLessThanOrEqual(1_000);
  });

  it("excludes Java under load, and Java excludes it", async () => {
    const { name, lock } = fresh();
    let inside = 0;
    let most = 0;
    let visits = 0;
    const visit = async () => {
      most = Math.max(most, ++inside);
      await party.redis.ping();
      inside--;
      visits++;
    };
    const ours = Array.from({ length: 30 }, () => lock.withLock(visit));
    const theirs = Array.from({ length: 3 }, async () => {
      const thread = new JavaThread(party.redis);
      for (let round = 0; round < 5; round++) {
        await until(async () => (await thread.tryLock(name)) === null);
        await visit();
        await thread.unlock(name);
      }
    });
    await Promise.all([...ours, ...theirs]);
    expect([most, visits, inside]).toEqual([1, 45, 0]);
  });
});
