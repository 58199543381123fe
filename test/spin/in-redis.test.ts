import { describe, expect, it, onTestFinished } from "vitest";
import { LockUnavailableError } from "../../src/index.ts";
import { spinLock } from "../../src/spin.ts";
import { spinLua } from "../../src/wires/spin-lua.generated.ts";
import { failure } from "../contract/observe.ts";
import { freshName, type Party } from "../support/fixture.ts";
import { type Match, TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";
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

  it("a key of another type does not cost the others their renewal", async () => {
    const { locks } = await join({ client: { leaseTime: 2_000 } });
    const leases = await Promise.all([1, 2, 3].map(() => spinLock(locks, freshName("spin")).lock()));
    const poisoned = leases[1]?.name ?? "";
    await stage.other.redis.multi().del(poisoned).hset(poisoned, "field", "value").exec();
    await until(() => leases[1]?.signal.aborted, { what: "the poisoned one to be lost" });
    const renewed = new Set<string>();
    locks.on("renew", (event) => renewed.add(event.name));
    await until(() => renewed.size === 2, { what: "the others to be renewed" });
    await stage.other.redis.del(poisoned);
    await Promise.allSettled(leases.map((lease) => lease.unlock()));
  });
});

describe("a reply is lost and the command is sent again", () => {
  const runs = (script: keyof typeof spinLua): Match => {
    const { sha } = spinLua[script];
    return ([command, first]) => command === "evalsha" && first === sha;
  };
  async function behindProxy(): Promise<{ proxy: TcpProxy; near: Party }> {
    const proxy = await TcpProxy.start(stage.server);
    const near = await join({ url: proxy.url });
    onTestFinished(() => proxy.stop());
    return { proxy, near };
  }

  it("acquire: it does not wait for itself", async () => {
    const { proxy, near } = await behindProxy();
    const dropped = proxy.dropReply(runs("acquire"));
    const lease = await spinLock(near.locks, freshName("spin")).tryLock(2_000);
    await dropped;
    expect(lease?.held).toBe(true);
    await lease?.unlock();
  });

  it("release: the lock is free, and the doubt is reported", async () => {
    const { proxy, near } = await behindProxy();
    const name = freshName("spin");
    const lease = await spinLock(near.locks, name).lock();
    const dropped = proxy.dropReply(runs("release"));
    expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "unknown" });
    await dropped;
    expect(await stage.other.redis.exists(name)).toBe(0);
  });
});
