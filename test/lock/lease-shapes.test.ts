import { afterAll, describe, expect, it } from "vitest";
import { fencedSet } from "../../src/fencing/index.ts";
import {
  type BaseLease,
  type Lease,
  type Lock,
  type LockClient,
  LockError,
  type MultiLease,
  type PermitLease,
  type UnfencedLease,
} from "../../src/index.ts";
import { redissonFencedLock, redissonLock } from "../../src/redisson.ts";
import { spinLock } from "../../src/spin.ts";
import { failure, record } from "../contract/observe.ts";
import { freshName, Parties } from "../support/fixture.ts";

// What a lease has is what its kind can keep: permits are released, locks are unlocked, and only
// what fences has a token.

const parties = new Parties();
afterAll(parties.close);

const FENCED: Readonly<Record<string, (locks: LockClient, name: string) => Lock>> = {
  lock: (locks, name) => locks.lock(name),
  fairLock: (locks, name) => locks.fairLock(name),
  "readWriteLock().read": (locks, name) => locks.readWriteLock(name).read,
  "readWriteLock().write": (locks, name) => locks.readWriteLock(name).write,
  redissonFencedLock,
};

const UNFENCED: Readonly<Record<string, (locks: LockClient, name: string) => Lock<UnfencedLease>>> = {
  redissonLock,
  spinLock,
};

describe.each(Object.entries(FENCED))("a lease of %s", (_, make) => {
  it("has a token, the same one in events and inspections", async () => {
    const { locks } = await parties.join();
    const told = record(locks);
    const lock = make(locks, freshName());
    const lease: Lease = await lock.lock();
    expect(lease.token).toBeGreaterThan(0);
    expect([told.acquire[0]?.token, (await lock.inspect()).holder?.token]).toEqual([
      lease.token,
      lease.token,
    ]);
    await lease.unlock();
    await lock.withLock((inside) => expect(inside.token).toBeGreaterThan(lease.token - 1));
    expect("release" in lease).toBe(false);
  });
});

describe.each(Object.entries(UNFENCED))("a lease of %s", (_, make) => {
  it("has no token: events and inspections have null", async () => {
    const { locks } = await parties.join();
    const told = record(locks);
    const lock = make(locks, freshName());
    const lease: UnfencedLease = await lock.lock();
    expect("token" in lease).toBe(false);
    expect(JSON.parse(JSON.stringify(lease))).toEqual({
      name: lock.name,
      held: true,
      remaining: expect.any(Number),
    });
    const { token, holder } = await lock.inspect();
    expect([token, holder?.token]).toEqual([null, null]);
    await lease.unlock();
    await lock.withLock((inside) => expect("token" in inside).toBe(false));
    await locks.scope(async () => {
      const outer = await lock.lock();
      const inner = await lock.lock();
      expect(["token" in outer, "token" in inner]).toEqual([false, false]);
      await inner.unlock();
    });
    expect([...told.acquire, ...told.release].map((one) => one.token)).toEqual(Array(5).fill(null));
    expect(told.lost).toMatchObject([{ token: null, firstToken: null }]);
  });

  it("as a member of a multi-lease has no entry in `tokens`", async () => {
    const { locks } = await parties.join();
    const [fenced, without] = [freshName(), freshName()];
    const lease: MultiLease = await locks.multiLock([fenced, make(locks, without)]).lock();
    expect(lease.names.toSorted()).toEqual([fenced, without].toSorted());
    expect([...lease.tokens]).toEqual([[fenced, (await locks.lock(fenced).inspect()).token]]);
    expect(lease.tokens.get(without)).toBe(undefined);
    expect(JSON.parse(JSON.stringify(lease)).tokens).toEqual(Object.fromEntries(lease.tokens));
    await lease.unlock();
  });

  it("is refused as a fence, with an error that names what is missing", async () => {
    const { locks, redis } = await parties.join();
    const lease = await make(locks, freshName()).lock();
    const set = fencedSet(redis, freshName(), "a", { fence: lease as unknown as Lease });
    expect(`${await failure(set)}`).toMatch(
      /^TypeError: .*fence .*has no fencing token: .*spinLock.*redissonLock/,
    );
    await lease.unlock();
  });
});

describe("a method of another library", () => {
  it("throws an error with the call that does this here", async () => {
    const { locks } = await parties.join();
    const lock = locks.lock(freshName());
    const calls: [object, string, string][] = [
      [locks, "withLock", "locks.lock(name).withLock(body)"],
      [locks, "acquire", "locks.lock(a).lock()"],
      [locks, "using", "locks.lock(a).withLock(body)"],
      [lock, "acquire", "lock.lock()"],
      [lock, "release", "lease.unlock()"],
    ];
    for (const [object, method, instead] of calls) {
      const call = () => (object as Record<string, () => unknown>)[method]?.();
      expect(call).toThrow(
        expect.objectContaining({ name: "TypeError", message: expect.stringContaining(instead) }),
      );
    }
  });
});

describe("a multi-lease", () => {
  it("has the token of each of its locks by name, and no other", async () => {
    const { locks } = await parties.join();
    const names = [freshName(), freshName()];
    await locks.multiLock(names).withLock(async (lease) => {
      const shown = await Promise.all(
        lease.names.map(async (name) => [name, (await locks.lock(name).inspect()).token]),
      );
      expect([...lease.tokens]).toEqual(shown);
      expect(lease.tokens.get("another")).toBe(undefined);
      expect(lease.tokens).toBe(lease.tokens);
    });
  });

  it("reports where its token(name) is now, and is not a fence itself", async () => {
    const { locks, redis } = await parties.join();
    const lease = await locks.multiLock([freshName()]).lock();
    const old = lease as unknown as { token(name: string): number };
    expect(() => old.token("a")).toThrow(
      new TypeError("Cannot read a token: lease.token(name) is lease.tokens.get(name) now"),
    );
    const set = fencedSet(redis, freshName(), "a", { fence: lease as unknown as Lease });
    expect(`${await failure(set)}`).toMatch(/^TypeError: .*lease\.tokens\.get\(name\)/);
    await lease.unlock();
  });
});

describe("a lease of permits", () => {
  it("is released, once, and has no unlock() and no token", async () => {
    const { locks } = await parties.join();
    const told = record(locks);
    const slots = locks.semaphore(freshName(), { permits: 3 });
    const lease: PermitLease = await slots.acquire(2);
    expect("token" in lease).toBe(false);
    expect(JSON.parse(JSON.stringify(lease))).toEqual({
      name: slots.name,
      held: true,
      remaining: expect.any(Number),
      units: 2,
    });
    expect((await slots.inspect()).holders[0]?.token).toBe(null);
    await lease.release();
    expect([lease.held, lease.remaining, (await slots.inspect()).used]).toEqual([false, 0, 0]);
    await lease.release();
    expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ code: "LOCK_RELEASED" }));
    expect(told.acquire.map(({ token }) => token)).toEqual([null]);
    expect(told.release.map(({ token }) => token)).toEqual([null]);
  });

  it("reports the new name of its unlock(), and keeps its permits", async () => {
    const { locks } = await parties.join();
    const slots = locks.semaphore(freshName(), { permits: 1 });
    const lease = await slots.acquire();
    const old = lease as unknown as { unlock(): void };
    expect(() => old.unlock()).toThrow(
      new TypeError("Cannot unlock permits: lease.unlock() of a semaphore is lease.release() now"),
    );
    expect(Object.keys(lease)).not.toContain("unlock");
    expect([lease.held, (await slots.inspect()).used]).toEqual([true, 1]);
    await lease.release();
  });

  it("is released by `await using`, by `using` and by a body", async () => {
    const { locks } = await parties.join();
    const slots = locks.semaphore(freshName(), { permits: 1 });
    {
      await using lease = await slots.acquire();
      expect(lease.held).toBe(true);
    }
    expect((await slots.inspect()).used).toBe(0);
    {
      using lease = await slots.acquire();
      expect(lease.held).toBe(true);
    }
    await slots.withPermits({ wait: 5_000 }, (lease) => {
      expect(["token" in lease, "release" in lease]).toEqual([false, true]);
    });
    expect((await slots.inspect()).used).toBe(0);
  });

  it("that is released in its body is released once", async () => {
    const { locks } = await parties.join();
    const slots = locks.semaphore(freshName(), { permits: 1 });
    await slots.withPermits(async (lease) => {
      await lease.release();
      expect((await slots.inspect()).used).toBe(0);
      await slots.withPermits({ wait: 0 }, () => {});
    });
    expect((await slots.inspect()).used).toBe(0);
  });

  it("rejects release() as unlock() of a lock does: with its loss, once", async () => {
    const { locks } = await parties.join();
    const slots = locks.semaphore(freshName(), { permits: 1 });
    const lease = await slots.acquire();
    await slots.forceUnlock();
    expect(await failure(lease.release())).toMatchObject({ code: "LOCK_LOST", lockName: slots.name });
    await lease.release();
  });

  it("that the end of its scope ended: its first release() reports that", async () => {
    const { locks } = await parties.join();
    const told = record(locks);
    const slots = locks.semaphore(freshName(), { permits: 1 });
    const lease = await locks.scope(() => slots.acquire());
    expect(await failure(lease.release())).toMatchObject({ code: "LOCK_LOST", reason: "scope" });
    expect((await slots.inspect()).used).toBe(0);
    expect(told.lost).toMatchObject([{ token: null, firstToken: null }]);
    const [error] = told.error;
    expect(error).toBeInstanceOf(LockError);
    expect(error?.message).toMatch(/release it in the scope/);
  });
});

it("all leases share one type", async () => {
  const { locks } = await parties.join();
  const slots = locks.semaphore(freshName(), { permits: 1 });
  const lock = locks.lock(freshName());
  const all: readonly BaseLease[] = [await lock.lock(), await slots.acquire()];
  for (const lease of all) await lease[Symbol.asyncDispose]();
  expect(all.map(({ held }) => held)).toEqual([false, false]);
});

/** Never called: what must not compile. */
async function refused(locks: LockClient): Promise<void> {
  const unfenced = spinLock(locks, "x");
  const bare = await unfenced.lock();
  // @ts-expect-error it has none
  bare.token;
  // @ts-expect-error its leases have no tokens
  const fenced: Lock = unfenced;
  const every: Lock<UnfencedLease> = fenced;
  const lease = await locks.multiLock([every, "y"]).lock();
  // @ts-expect-error a Map
  lease.token;
  const permits = await locks.semaphore("x").acquire();
  // @ts-expect-error permits are released
  await permits.unlock();
  // @ts-expect-error permits fence nothing
  permits.token;
  // @ts-expect-error it is two locks
  await locks.readWriteLock("x").withLock(() => {});
}

it("no type has what its lease lacks", () => {
  expect(refused).toBeTypeOf("function");
});
