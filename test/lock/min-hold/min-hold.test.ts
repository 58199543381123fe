import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { createLockClient } from "../../../src/index.ts";
import { codes } from "../../../src/redis/lua.generated.ts";
import { failure } from "../../contract/observe.ts";
import { Actor } from "../../support/actor.ts";
import { BareScripts, entry, hold, LOCK } from "../../support/bare-scripts.ts";
import { freshName, Parties, testUrl } from "../../support/fixture.ts";
import { until } from "../../support/until.ts";

// `minHold`: a lock that is given back before its time stays taken for the rest.

const parties = new Parties();
afterEach(parties.close);
afterAll(parties.close);

const MIN = 60_000;
async function two() {
  const [here, there] = [await parties.join(), await parties.join()];
  const name = freshName();
  return { name, key: `holdfast:{${name}}`, redis: here.redis, here: here.locks, there: there.locks };
}

describe.each(["lock", "fairLock"] as const)("%s", (kind) => {
  it("given back early stays taken, by nobody, for the rest of the time", async () => {
    const { name, key, redis, here, there } = await two();
    const lease = await here[kind](name).lock({ minHold: MIN });
    const before = await redis.get(key);
    await lease.unlock();
    await lease.unlock();
    expect(await redis.get(key)).not.toBe(before);
    const left = await redis.pttl(key);
    expect(left).toBeGreaterThan(MIN - 20_000);
    expect(left).toBeLessThanOrEqual(MIN + 10);
    for (const locks of [here, there]) {
      expect(await locks[kind](name).tryLock()).toBeNull();
      expect(await locks[kind](name).tryLock({ minHold: MIN })).toBeNull();
      expect(await locks[kind](name).isLocked()).toBe(true);
      const { holder, remaining, kept } = await locks[kind](name).inspect();
      expect([holder === null, kept, (remaining ?? 0) > 0]).toEqual([false, false, true]);
    }
    expect(await there[kind](name).forceUnlock()).toBe(true);
    await (await there[kind](name).lock({ wait: 0 })).unlock();
  });

  it("waiters here and elsewhere get it when the time is over, one after the other", async () => {
    const { name, here, there } = await two();
    const minHold = 400;
    const asked = performance.now();
    const lease = await here[kind](name).lock({ minHold });
    const waits = [here, there].map(async (locks) => {
      const own = await locks[kind](name).lock();
      const waited = performance.now() - asked;
      await own.unlock();
      return waited;
    });
    await until(async () => (await here[kind](name).inspect()).waiters.length === 2);
    await lease.unlock();
    const waited = await Promise.all(waits);
    expect(Math.min(...waited)).toBeGreaterThanOrEqual(minHold - 10);
  });

  it("given back later than that goes at once", async () => {
    const { name, key, redis, here } = await two();
    const lease = await here[kind](name).lock({ minHold: 20 });
    await delay(25);
    await lease.unlock();
    expect(await redis.exists(key)).toBe(0);
  });
});

it("one that was handed over lives for the whole time before its caller has it, whatever becomes of that one", async () => {
  const { name, key, redis, here, there } = await two();
  const first = await there.lock(name).lock();
  const second = here.lock(name).lock({ minHold: MIN });
  await until(async () => (await there.lock(name).inspect()).waiters.length === 1);
  await first.unlock();
  const lease = await second;
  expect(await redis.pttl(key)).toBeGreaterThan(MIN - 20_000);
  await lease.unlock();
  expect(await redis.pttl(key)).toBeGreaterThan(MIN - 20_000);
});

it("is not passed on to a caller of the same process, nor kept there", async () => {
  const { redis } = await parties.join();
  const locks = createLockClient(redis, { linger: 1_000 });
  const name = freshName();
  const lease = await locks.lock(name).lock({ minHold: MIN });
  const waiting = locks.lock(name).tryLock({ wait: 100 });
  await lease.unlock();
  expect(await waiting).toBeNull();
  expect(locks.stats()).toMatchObject({ kept: 0, takenAgain: 0 });
  await locks.close();
});

it("a lock that this process keeps is taken over for it", async () => {
  const { redis } = await parties.join();
  const locks = createLockClient(redis, { linger: 1_000 });
  const name = freshName();
  const lock = locks.lock(name);
  await until(async () => {
    await (await lock.lock()).unlock();
    return locks.stats().kept === 1;
  });
  await lock.withLock(() => {}, { minHold: MIN });
  expect(await redis.pttl(`holdfast:{${name}}`)).toBeGreaterThan(MIN - 20_000);
  await locks.close();
});

it("stays taken when the client is closed with a grace that is over", async () => {
  const { name, key, redis, here } = await two();
  here.on("error", () => {});
  await here.lock(name).lock({ minHold: MIN });
  await here.close({ grace: 0 });
  expect(await redis.pttl(key)).toBeGreaterThan(MIN - 20_000);
});

it("is not freed by a late message of its grant while its release is refused", async () => {
  const { name, key, redis, there } = await two();
  const [user, other] = [`user-${name}`, freshName()];
  await redis.call("ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all");
  const { locks: here } = await parties.join({ redis: { username: user, password: "secret" } });
  here.on("error", () => {});
  const [theirs, their] = [await there.lock(name).lock(), await there.lock(other).lock()];
  const [ours, our] = [here.lock(name).lock({ minHold: MIN }), here.lock(other).lock()];
  for (const one of [name, other])
    await until(async () => (await there.lock(one).inspect()).waiters.length === 1);
  await theirs.unlock();
  const lease = await ours;
  const id = `${await redis.get(key)}`.slice(37);
  await redis.call("ACL", "SETUSER", user, "-pexpire");
  expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  await redis.publish(
    id.slice(0, id.lastIndexOf(":")),
    `grant ${lease.token} ${lease.token} 3000 0 ${id} ${key}`,
  );
  // It has been read when the message behind it has, and what it led to was executed before the question.
  await their.unlock();
  await our;
  expect(await here.lock(name).isLocked()).toBe(true);
  expect(await redis.get(key)).toContain(id);
  await redis.call("ACL", "SETUSER", user, "+pexpire");
  await until(async () => !(await redis.get(key))?.includes(id));
  expect(await redis.pttl(key)).toBeGreaterThan(MIN - 20_000);
  await redis.call("ACL", "DELUSER", user);
});

it("is taken back whole when its caller has gone before it had the lock", async () => {
  const { name, key, redis, here, there } = await two();
  const first = await there.lock(name).lock();
  const controller = new AbortController();
  const second = failure(here.lock(name).lock({ minHold: MIN, signal: controller.signal }));
  await until(async () => (await there.lock(name).inspect()).waiters.length === 1);
  controller.abort(new Error("gone"));
  await second;
  await first.unlock();
  await until(async () => (await redis.exists(key)) === 0);
});

it("is refused in a scope that has taken the lock with less, and counts from there where that is as long", async () => {
  const { name, key, redis, here } = await two();
  const lock = here.lock(name);
  const refusals = async (minHold: number) => [
    await failure(lock.tryLock({ minHold })),
    await failure(here.fairLock(name).lock({ minHold })),
    await failure(lock.withLock(() => expect.unreachable(), { minHold })),
  ];
  const refused = (had: string) => ({
    name: "TypeError",
    message: expect.stringContaining(`where its scope takes the lock first, which has ${had}, received`),
  });
  const three = (had: string) => [refused(had), refused(had), refused(had)];
  await lock.withLock(async () => expect(await refusals(MIN)).toMatchObject(three("none")));
  expect(await redis.exists(key)).toBe(0);
  await here.scope(async () => {
    const [first, second] = await Promise.allSettled([lock.lock(), lock.lock({ minHold: MIN })]);
    expect(second).toMatchObject({ status: "rejected", reason: refused("none") });
    if (first.status === "fulfilled") await first.value.unlock();
  });
  expect(await redis.exists(key)).toBe(0);
  await lock.withLock(
    async () => {
      expect(await refusals(MIN + 1)).toMatchObject(three(`${MIN}`));
      await lock.withLock(() => {}, { minHold: MIN });
    },
    { minHold: MIN },
  );
  expect(await redis.pttl(key)).toBeGreaterThan(MIN - 20_000);
});

describe("a process", () => {
  it.each(["unlocks and exits", "is killed"])("that %s leaves the lock taken", async (how) => {
    const { name, key, redis } = await two();
    const actor = await Actor.start({ url: testUrl() });
    const handle = await actor.call("acquireFor", name, MIN);
    const ended = how === "is killed" ? actor.kill() : actor.call("unlockAndExit", handle).catch(() => {});
    await ended;
    await actor.exit;
    expect(await redis.pttl(key)).toBeGreaterThan(MIN - 20_000);
  });
});

it("many unlocks before their times do not look at one another", async () => {
  const { name, here } = await two();
  const count = 300;
  const many = Array.from({ length: count }, (_, n) => here.lock(`${name}:${n}`).lock({ minHold: MIN }));
  const leases = await Promise.all(many);
  const each = Map.prototype[Symbol.iterator];
  let seen = 0;
  Map.prototype[Symbol.iterator] = function () {
    seen += this.size;
    return each.call(this);
  };
  try {
    await Promise.all(leases.map((lease) => lease.unlock()));
  } finally {
    Map.prototype[Symbol.iterator] = each;
  }
  expect(seen).toBeLessThan(5 * count);
});

it("is refused where it cannot be had", async () => {
  const { name, here, redis } = await two();
  const refusals = [
    here.redissonLock(name).tryLock({ minHold: 10 }),
    here.spinLock(name).lock({ minHold: 10 }),
    here.spinLock(name).withLock(() => {}, { minHold: 10 }),
    here.multiLock([name]).tryLock({ minHold: 10 }),
    here.semaphore(name, { permits: 1 }).acquire({ minHold: 10 } as object),
  ];
  for (const refusal of refusals)
    expect(await failure(refusal)).toMatchObject({
      name: "TypeError",
      message: expect.stringMatching(/minHold/),
    });
  const { read, write } = here.readWriteLock(name);
  for (const lock of [read, write, here.spinLock(name), here.redissonLock(name)])
    expect(await failure(lock.lock({ minHold: 10 }))).toMatchObject({
      message: `Cannot lock '${lock.name}': minHold is an option of lock and fairLock alone`,
    });
  expect(await failure(here.lock(name).lock({ minHold: 500, lease: 400 }))).toMatchObject({
    name: "RangeError",
    message: expect.stringMatching(/minHold must be .* to 400 \(lease\), received 500/),
  });
  expect(await redis.exists(`holdfast:{${name}}`)).toBe(0);
});

describe("the script", () => {
  const scripts = new BareScripts();
  const { RELEASED, TAKEN, HELD, GONE, OWNER } = codes;
  const NOBODY = hold("a", 99);
  const some = expect.anything();
  const take = async (of: string) => (await scripts.acquire(of)) as [number, number, number, number];
  const releaseAt = (of: string, token: number, at: number, most = MIN) =>
    scripts.run("releaseAt", of, token, at, NOBODY, most);

  it("gives the lock to nobody until then; a copy is told the same, and changes nothing", async () => {
    const [, , token] = await take(hold("a"));
    const at = (await scripts.micros()) + 5_000_000;
    expect(await releaseAt(hold("a"), token, at)).toBe(RELEASED);
    const value = `10 ${token + 1} ${token} ${NOBODY}`;
    expect(await scripts.redis.get(LOCK)).toBe(value);
    expect(await releaseAt(hold("a"), token, at + 9_000_000)).toBe(RELEASED);
    expect(await scripts.run("release", hold("a"), token)).toBe(RELEASED);
    expect(await scripts.run("leave", hold("a"), "")).toBe(GONE);
    expect(await scripts.redis.get(LOCK)).toBe(value);
    expect(await scripts.redis.pttl(LOCK)).toBeLessThanOrEqual(5_000);
  });

  it("never for longer than its client says is left", async () => {
    const [, , token] = await take(hold("a"));
    expect(await releaseAt(hold("a"), token, (await scripts.micros()) + 3_600_000_000, 5_000)).toBe(RELEASED);
    expect(await scripts.holder()).toBe(NOBODY);
    expect(await scripts.redis.pttl(LOCK)).toBeLessThanOrEqual(5_000);
  });

  it("is a release when the time is over: to nobody, or to the first that waits", async () => {
    const [, , first] = await take(hold("a"));
    expect(await releaseAt(hold("a"), first, (await scripts.micros()) - 1)).toBe(RELEASED);
    expect(await scripts.redis.exists(LOCK)).toBe(0);
    const [, , token] = await take(hold("a", 2));
    await scripts.acquire(hold("b"), entry(hold("b")));
    expect(await releaseAt(hold("a", 2), token, (await scripts.micros()) - 1)).toBe(RELEASED);
    expect(await releaseAt(hold("a", 2), token, (await scripts.micros()) - 1)).toBe(RELEASED);
    expect(await scripts.holder()).toBe(hold("b"));
    expect(await scripts.messages()).toMatchObject([expect.stringMatching(/^grant /)]);
  });

  it("does nothing to a lock that is another's or nobody's", async () => {
    const [, , token] = await take(hold("a"));
    const value = await scripts.redis.get(LOCK);
    const at = (await scripts.micros()) + 5_000_000;
    expect(await releaseAt(hold("b"), token - 1, at)).toBe(TAKEN);
    expect(await scripts.redis.get(LOCK)).toBe(value);
    await scripts.redis.del(LOCK);
    expect(await releaseAt(hold("a"), token, at)).toEqual([GONE, some]);
    expect(await scripts.redis.exists(LOCK)).toBe(0);
  });

  it("waiters keep their places, and the first of them has it behind that", async () => {
    const [, , token] = await take(hold("a"));
    await scripts.acquire(hold("b"), entry(hold("b")));
    await releaseAt(hold("a"), token, (await scripts.micros()) + 50_000);
    const look = () => scripts.run("recheck", hold("b"), 3_000, 0, entry(hold("b")), 4_500, "1", 0);
    const [code, , left] = (await look()) as number[];
    expect([code, Number(left) <= 50]).toEqual([HELD, true]);
    await until(async () => ((await look()) as number[])[0] === OWNER);
    expect(scripts.heard).toEqual([]);
  });

  it("ends a hold also in a Redis that is full", async () => {
    const [, , token] = await take(hold("a"));
    const at = (await scripts.micros()) + 5_000_000;
    await scripts.redis.config("SET", "maxmemory", "1");
    try {
      expect(await releaseAt(hold("a"), token, at)).toBe(RELEASED);
    } finally {
      await scripts.redis.config("SET", "maxmemory", "0");
    }
  });
});
