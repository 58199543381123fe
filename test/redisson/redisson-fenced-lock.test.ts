import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Lock, UnfencedLease } from "../../src/index.ts";
import { redissonFencedLock, redissonLock } from "../../src/redisson.ts";
import { counterOf, JavaThread } from "../contract/java.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { until } from "../support/until.ts";

describe("redissonFencedLock beside Java", () => {
  const parties = new Parties();
  let party: Party;
  let java: JavaThread;
  beforeAll(async () => {
    party = await parties.join();
    java = new JavaThread((await parties.join()).redis);
  });
  afterAll(parties.close);

  function fresh(name = freshName("fenced")): { name: string; counter: string; lock: Lock } {
    return { name, counter: counterOf(name), lock: redissonFencedLock(party.locks, name) };
  }
  const plain = (name: string): Lock<UnfencedLease> => redissonLock(party.locks, name);

  it.each(["", "{tag}"])("the token is Java's counter, which has no TTL (name with '%s')", async (tag) => {
    const { name, counter, lock } = fresh(tag + freshName("fenced"));
    for (const token of [1, 2, 3]) {
      const lease = await lock.lock();
      expect([lease.token, await party.redis.get(counter)]).toEqual([token, `${token}`]);
      expect(await party.redis.hvals(name)).toEqual(["1"]);
      expect((await lock.inspect()).token).toBe(token);
      await lease.unlock();
    }
    expect([await party.redis.ttl(counter), (await lock.inspect()).token]).toEqual([-1, null]);
  });

  it("grows over holders on both sides; re-entrance leaves ours as it is, and raises Java's", async () => {
    const { name, lock } = fresh();
    expect(await java.tryFencedLock(name)).toBe(1);
    expect(await lock.tryLock()).toBe(null);
    expect(await java.tryFencedLock(name)).toBe(2);
    await java.unlock(name);
    await java.unlock(name);
    await lock.withLock(async ({ token }) => {
      expect(token).toBe(3);
      await using inner = await lock.lock();
      expect([inner.token, await party.redis.hvals(name)]).toEqual([3, ["2"]]);
      expect(await java.tryFencedLock(name)).toBe(null);
    });
    expect(await java.tryFencedLock(name)).toBe(4);
    await java.unlock(name);
  });

  it("a failed try takes no token, nor does a plain lock of the same name, which excludes it", async () => {
    const { name, counter, lock } = fresh();
    const lease = await lock.lock();
    for (let i = 0; i < 3; i++) expect(await redissonFencedLock(party.locks, name).tryLock(5)).toBe(null);
    expect(await plain(name).tryLock()).toBe(null);
    await lease.unlock();
    const other = await plain(name).lock();
    expect(["token" in other, await lock.tryLock(), await party.redis.get(counter)]).toEqual([
      false,
      null,
      "1",
    ]);
    await other.unlock();
  });

  it("a scope that holds the plain lock does not enter the fenced one with a token of 0", async () => {
    const { name, lock } = fresh();
    await plain(name).withLock(async () => expect(await lock.tryLock()).toBe(null));
  });

  it("starts again if its counter is lost, as Java's does", async () => {
    const { name, counter, lock } = fresh();
    for (let i = 0; i < 3; i++) await lock.withLock(() => {});
    await party.redis.del(counter);
    expect(await lock.withLock(({ token }) => token)).toBe(1);
    const lease = await lock.lock();
    await party.redis.del(counter);
    await lease.unlock();
    expect(await java.tryFencedLock(name)).toBe(1);
    await java.unlock(name);
  });

  it.each(["-1", "9007199254740991", "9223372036854775807", "abc"])(
    "a counter of %s gives no token: no caller holds the lock",
    async (value) => {
      const { name, counter, lock } = fresh();
      await party.redis.set(counter, value);
      await expect(lock.tryLock()).rejects.toMatchObject({
        code: "LOCK_UNAVAILABLE",
        message: expect.stringMatching(/token counter is not from 1 to 2\^53-1|integer|overflow/),
      });
      expect(await party.redis.exists(name)).toBe(0);
    },
  );

  it("tokens grow in the order of the holds under load from both sides", async () => {
    const { name, lock } = fresh();
    const tokens: number[] = [];
    const ours = Array.from({ length: 30 }, () => lock.withLock(({ token }) => void tokens.push(token)));
    const theirs = Array.from({ length: 3 }, async () => {
      const thread = new JavaThread(party.redis);
      for (let round = 0; round < 5; round++) {
        tokens.push(Number(await until(() => thread.tryFencedLock(name))));
        await thread.unlock(name);
      }
    });
    await Promise.all([...ours, ...theirs]);
    expect(tokens).toEqual(Array.from({ length: 45 }, (_, i) => i + 1));
  });

  it("is refused with a key prefix, with which Java would not find the counter", async () => {
    const { locks } = await parties.join({ redis: { keyPrefix: "app:" } });
    expect(() => redissonFencedLock(locks, "order:42")).toThrow(TypeError);
    expect(() => redissonFencedLock(locks, "order:42")).toThrow(/prefix 'app:'.*token counter of 'order:42'/);
  });
});
