import { describe, expect, it } from "vitest";
import { LockUnavailableError } from "../../src/index.ts";
import { spinLock } from "../../src/spin.ts";
import { failure } from "../contract/observe.ts";
import { freshName } from "../support/fixture.ts";
import { SpinStage } from "./stage.ts";

// What the scripts of spinLock leave in Redis, also where an answer is lost.

const stage = new SpinStage();
const { join, held } = stage;

describe("in Redis", () => {
  it("is a plain string with a TTL under the name, its value the holder", async () => {
    const { locks } = await join();
    const name = freshName("spin");
    const lease = await spinLock(locks, name).lock({ lease: 20_000 });
    expect(await stage.other.redis.get(name)).toMatch(new RegExp(`^${locks.id}:[0-9a-z]{21}$`));
    const ttl = await stage.other.redis.pttl(name);
    expect(ttl).toBeGreaterThan(19_000);
    expect(ttl).toBeLessThanOrEqual(20_000);
    await lease.unlock();
    expect(await stage.other.redis.exists(name)).toBe(0);
  });

  it("puts a prefix before the name", async () => {
    const { locks } = await join();
    const name = freshName("spin");
    const lease = await spinLock(locks, name, { prefix: "mutex:" }).lock();
    expect([lease.name, await stage.other.redis.exists(`mutex:${name}`)]).toEqual([`mutex:${name}`, 1]);
    expect(await spinLock(locks, name).isLocked()).toBe(false);
    await lease.unlock();
  });

  it("refuses bad names and prefixes", () => {
    const make = spinLock.bind(null, stage.other.locks) as (...args: unknown[]) => unknown;
    expect(() => make("")).toThrow(RangeError);
    expect(() => make("", { prefix: "a" })).toThrow(RangeError);
    expect(() => make("a", { prefix: 1 })).toThrow(/prefix must be a string, received 1/);
    expect(() => make("a", "b")).toThrow(TypeError);
    expect(() => make("a", { prefixes: "b" })).toThrow(/unknown option/);
    expect(() => make("a".repeat(256), { prefix: "b".repeat(257) })).toThrow(/512 bytes/);
  });

  it("waits for a key without TTL, and acquires the lock when it is gone", async () => {
    const { locks } = await join();
    const name = await held();
    await stage.other.redis.persist(name);
    const lock = spinLock(locks, name);
    expect(await lock.inspect()).toMatchObject({
      holder: { id: "somebody else", label: null },
      token: null,
      remaining: Number.POSITIVE_INFINITY,
      waiters: null,
    });
    const waiter = lock.lock({ wait: 10_000 });
    await stage.other.redis.del(name);
    await (await waiter).unlock();
  });

  it("names a key of another type, and never deletes it", async () => {
    const { locks } = await join();
    const name = freshName("spin");
    await stage.other.redis.hset(name, "field", "value");
    const lock = spinLock(locks, name);
    for (const call of [
      () => lock.tryLock(),
      () => lock.lock(),
      () => lock.inspect(),
      () => lock.forceUnlock(),
    ]) {
      const error = await failure(call());
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(String(error)).toContain("WRONGTYPE");
    }
    expect(await stage.other.redis.hget(name, "field")).toBe("value");
  });
});
