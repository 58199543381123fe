import { AsyncLocalStorage } from "node:async_hooks";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Lease, Lock, LockClient, LockClientOptions } from "../../src/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { redissonFencedLock, redissonLock } from "../../src/redisson.ts";
import { spinLock } from "../../src/spin.ts";
import { Gate, recordOf, warnings } from "../contract/observe.ts";
import { codes } from "../support/circles.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// What `reentrant: false` does beside what every kind of lock promises
// (test/contract/reentrance.ts): a call that waits for its own scope is told of, and never refused.
// What takes 5 s takes 200 ms here.
vi.mock("../../src/defaults.ts", async (all) => ({
  ...((await all()) as object),
  DEADLOCK_AFTER: 200,
  DEADLOCK_AGAIN: 100,
}));

const OFF = { reentrant: false };
const parties = new Parties();
afterAll(parties.close);

const join = (client: LockClientOptions = {}): Promise<Party> => parties.join({ client });

/** Runs a call in a body until it was told of, and lets both end. */
async function meet(lock: Lock, told: () => boolean, nested: () => Promise<Lease | null>): Promise<void> {
  let waiting: Promise<Lease | null> | undefined;
  await lock.withLock(async () => {
    waiting = nested();
    await until(told, { what: "the warning" });
  });
  await (await waiting)?.unlock();
}

describe("a call that waits for its own scope", () => {
  let seen: ReturnType<typeof warnings>;
  beforeEach(() => {
    seen = warnings();
  });

  const SIDES: Readonly<
    Record<string, (locks: LockClient, name: string) => [Lock, () => Promise<Lease | null>]>
  > = {
    "the call": (locks, name) => [locks.lock(name), () => locks.lock(name).lock(OFF)],
    "the call's lock": (locks, name) => [locks.lock(name), () => locks.lock(name, OFF).tryLock(60_000)],
    "the body's lock": (locks, name) => [locks.lock(name, OFF), () => locks.lock(name).lock()],
    "the body's lock, of readers": (locks, name) => {
      const { read, write } = locks.readWriteLock(name, OFF);
      return [read, () => write.lock()];
    },
    "a multi-lock's member": (locks, name) => [
      locks.fairLock(name),
      () => locks.multiLock([freshName(), locks.fairLock(name, OFF)]).lock() as unknown as Promise<Lease>,
    ],
  };

  it.each(Object.entries(SIDES))(
    "is reported by an event and a warning with both places: %s",
    async (_, side) => {
      const { locks } = await join();
      const name = freshName();
      const told = recordOf(locks, [name]);
      // The first use has the places of all later ones noted.
      await locks.lock(freshName()).withLock(OFF, () => {});
      const [lock, nested] = side(locks, name);
      await meet(lock, () => seen.length > 0, nested);
      const [warning, ...others] = seen;
      expect(others).toEqual([]);
      expect(warning).toMatchObject({ code: "LOCK_SELF_WAIT" });
      const places = [...(warning?.message ?? "").matchAll(/reentrant\.test\.ts:(\d+)/g)].map(
        ([, line]) => line,
      );
      expect([places.length, new Set(places).size]).toEqual([2, 2]);
      expect(warning?.message).toContain(`lock '${name}', which its own scope holds, taken at `);
      const scoped = told.wait.filter(({ heldBy }) => heldBy === "this scope");
      expect(scoped).toEqual([{ ...scoped[0], name, waitedFor: expect.any(Number) }]);
      expect(scoped[0]?.waitedFor).toBeGreaterThan(190);
      const { call } = told.acquire.at(-1) ?? {};
      expect([scoped[0]?.call, told.giveup]).toEqual([call, []]);
    },
  );

  it("is warned about once for each place, and reported by an event each time", async () => {
    const { locks } = await join(OFF);
    const names = [freshName(), freshName(), freshName()];
    const told = recordOf(locks, names);
    const count = () => told.wait.filter(({ heldBy }) => heldBy === "this scope").length;
    for (const [i, name] of names.entries()) {
      const lock = locks.lock(name);
      if (i < 2)
        await meet(
          lock,
          () => count() > i,
          () => lock.lock(),
        );
      else
        await meet(
          lock,
          () => count() > i,
          () => lock.tryLock(60_000),
        );
    }
    await until(() => seen.length > 1, { what: "the warning of the other place" });
    expect([count(), seen.length]).toEqual([3, 2]);
  });

  it("is reported 5 s after its scope has got the lock, if that came later; not before, and not while others have it", async () => {
    const [{ locks }, theirs] = [await join(OFF), await join()];
    const name = freshName();
    const told = recordOf(locks, [name]);
    const foreign = await theirs.locks.lock(name).lock();
    await locks.scope(async () => {
      const calls = [locks.lock(name).lock(), locks.lock(name).lock()];
      const begun = performance.now();
      await until(() => performance.now() - begun > 500);
      expect(seen).toEqual([]);
      // Before the scope gets the lock: a busy machine says late that it has it.
      const freed = performance.now();
      await foreign.unlock();
      const first = (await calls[0]) as Lease;
      await until(() => seen.length > 0, { what: "the warning" });
      expect(performance.now() - freed).toBeGreaterThan(190);
      await first.unlock();
      await (await calls[1])?.unlock();
    });
    expect(told.wait.map(({ heldBy }) => heldBy)).toEqual(["unknown", "unknown", "this scope"]);
  });

  it("is not also reported as one that waits for its own client, however short its lease is", async () => {
    const { locks } = await join(OFF);
    const lock = locks.lock(freshName());
    const told = recordOf(locks, [lock.name]);
    let waiting: Promise<unknown> | undefined;
    await lock.withLock(async () => {
      const begun = performance.now();
      // Its lease is over by now where the machine stands still.
      waiting = lock.lock({ lease: 300, watchdog: true }).then((lease) => lease.unlock().catch(() => {}));
      await until(() => performance.now() - begun > 1_500); // two leases, and as long again
    });
    await waiting;
    expect(told.wait.map(({ heldBy }) => heldBy)).toEqual(["unknown", "this scope"]);
    expect(seen.filter(({ message }) => message.includes("which this process (pid"))).toEqual([]);
  });

  it("has the wait that it names, and then an error that says what is wrong", async () => {
    const { locks } = await join();
    const lock = locks.lock(freshName());
    const errors = await lock.withLock(() =>
      Promise.all(
        [{ wait: 0 }, { wait: 20 }].map((time) =>
          lock.withLock({ ...OFF, ...time }, () => "never").catch((error: unknown) => error),
        ),
      ),
    );
    for (const error of errors)
      expect(error).toMatchObject({
        code: "LOCK_TIMEOUT",
        heldBy: "this scope",
        message: expect.stringContaining("`reentrant: false`"),
      });
  });

  it("costs only the place if an application's own stack traces fail", async () => {
    const { locks } = await join(OFF);
    const lock = locks.lock(freshName());
    const { prepareStackTrace } = Error;
    await lock.withLock(async () => {
      Error.prepareStackTrace = () => {
        throw new Error("made by the application");
      };
      const waiting = lock.lock();
      await until(() => seen.length > 0, { what: "the warning" }).finally(() => {
        Error.prepareStackTrace = prepareStackTrace;
      });
      void waiting.then((lease) => lease.unlock());
    });
    expect(seen[0]?.message).toContain("A call at an unknown line");
    await until(async () => !(await lock.isLocked()), { what: "the lock to be free" });
  });
});

describe("the search for deadlocks", () => {
  it("finds deadlocks of a client with reentrant: false", async () => {
    const all = await Promise.all([1, 2].map(() => join({ ...OFF, deadlocks: "reject" })));
    const names = [freshName(), freshName()];
    const both = [new Gate(), new Gate()];
    const ended = await Promise.all(
      all.map(({ locks }, i) =>
        locks.lock(names[i] as string).withLock(async () => {
          both[i]?.open();
          await Promise.all(both.map(({ passed }) => passed));
          const other = locks.lock(names[1 - i] as string);
          return other.withLock(() => "both").catch((error: unknown) => error);
        }),
      ),
    );
    expect(codes(ended)).toEqual(["DEADLOCK", "both"]);
    expect((ended.find((one) => one instanceof Error) as Error).stack).toContain("reentrant.test.ts");
  });

  it("leaves out a stranger that waits for its own scope: it is not rejected, though it came last", async () => {
    const seen = warnings();
    const parties = await Promise.all([1, 2].map(() => join({ deadlocks: "reject" })));
    const names = [freshName(), freshName()];
    const told = parties.map(({ locks }) => recordOf(locks, names));
    const both = [new Gate(), new Gate()];
    let inBody: <T>(work: () => T) => T = (work) => work();
    const bodies = parties.map(({ locks }, i) =>
      locks.lock(names[i] as string).withLock(async () => {
        if (i === 0) inBody = AsyncLocalStorage.snapshot();
        both[i]?.open();
        await Promise.all(both.map(({ passed }) => passed));
        const other = locks.lock(names[1 - i] as string);
        return other.withLock(() => "both").catch((error: unknown) => error);
      }),
    );
    await until(() => told.every(({ wait }) => wait.length === 1), { what: "both to wait" });
    const stranger = inBody(() => parties[0]?.locks.lock(names[0] as string).lock(OFF));
    // It may have the lock before the other body gets it.
    const over = stranger?.then((lease) => lease.unlock());
    expect(codes(await Promise.all(bodies))).toEqual(["DEADLOCK", "both"]);
    await over;
    expect(seen.map(({ code }) => code)).toEqual(["LOCK_SELF_WAIT"]);
  });
});

describe("the order of multi-locks", () => {
  it("is checked all the same, and a multi-lock that wants what its scope holds waits for it", async () => {
    const { locks } = await join(OFF);
    const name = freshName();
    const [first, second] = [`${name}:1`, `${name}:2`];
    const both = locks.multiLock([first, second]);
    await locks.multiLock([second]).withLock(async () => {
      const nested = locks.multiLock([first]).withLock(() => "taken");
      await expect(nested).rejects.toMatchObject({ code: "LOCK_ORDER" });
    });
    await both.withLock(async () => {
      expect([both.isHeldHere(), await both.tryLock(), await both.tryLock({ reentrant: true })]).toEqual([
        true,
        null,
        null,
      ]);
      await expect(both.lock({ wait: 20 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    });
  });

  it("goes member by member: one member is entered, and the other is waited for", async () => {
    const { locks } = await join();
    const name = freshName();
    const [shared, own] = [locks.lock(`${name}:1`), locks.lock(`${name}:2`, OFF)];
    await locks.multiLock([shared, own]).withLock(async (outer) => {
      expect(await locks.multiLock([shared, own]).tryLock()).toBe(null);
      const again = await locks.multiLock([shared]).lock();
      expect(again.tokens).toEqual(new Map([[shared.name, outer.tokens.get(shared.name)]]));
      await again.unlock();
      expect(await locks.lock(own.name).tryLock()).toBe(null);
    });
    // Named twice, the stricter word counts.
    await locks.multiLock([locks.lock(own.name), own, locks.lock(own.name)]).withLock(async () => {
      expect(await locks.lock(own.name).tryLock()).toBe(null);
    });
  });
});

describe("read-write locks", () => {
  it("a scope that reads may wait to write, and one that writes to read, if one of the two is not to enter the other", async () => {
    const { locks } = await join();
    const { read, write } = locks.readWriteLock(freshName(), OFF);
    await read.withLock(async () => {
      expect([read.isHeldHere(), write.isHeldHere(), await write.tryLock()]).toEqual([true, false, null]);
    });
    await write.withLock(async () => {
      expect([write.isHeldHere(), read.isHeldHere(), await read.tryLock()]).toEqual([true, true, null]);
    });
  });

  it("a reader that is not to be entered does not hide one that may be", async () => {
    const { locks } = await join();
    const { read } = locks.readWriteLock(freshName());
    const told = recordOf(locks, [read.name]);
    await locks.scope(async () => {
      const first = await read.lock();
      const alone = await read.lock(OFF);
      const again = await read.lock();
      expect(told.acquire.length).toBe(2); // it has entered the first one's hold
      for (const lease of [first, alone, again]) await lease.unlock();
    });
    expect(told.release.length).toBe(2);
  });
});

it("permits are never re-entrant, whatever their client says", async () => {
  const { locks } = await join(OFF);
  const slots = locks.semaphore(freshName(), { permits: 2 });
  await slots.withPermits(async () => {
    const second = await slots.acquire();
    expect(await slots.tryAcquire()).toBe(null);
    await second.release();
  });
  const unknown = /unknown option 'reentrant'/;
  await expect(slots.acquire(1, OFF as never)).rejects.toThrow(unknown);
  await expect(slots.withPermits(OFF as never, () => {})).rejects.toThrow(unknown);
  expect(() => locks.semaphore("x", OFF as never)).toThrow(unknown);
});

it("is true or false wherever it is an option", async () => {
  const { locks, redis } = await join();
  const bad = { reentrant: "no" as never };
  const quorum = createQuorumClient([redis, redis.duplicate(), redis.duplicate()]);
  for (const make of [
    () => locks.lock("x", bad),
    () => locks.fairLock("x", bad),
    () => locks.readWriteLock("x", bad),
    () => locks.readWriteLock("x", { fair: true, ...bad }),
    () => redissonLock(locks, "x", bad),
    () => redissonFencedLock(locks, "x", bad),
    () => spinLock(locks, "x", bad),
    () => quorum.lock("x", bad),
  ])
    expect(make).toThrow(/: reentrant must be true or false, received 'no'$/);
  await quorum.close();
  await expect(join(bad)).rejects.toThrow(
    new TypeError("Cannot create a lock client: reentrant must be true or false, received 'no'"),
  );
  await expect(join({ scopes: false } as never)).rejects.toThrow(
    new TypeError("Cannot create a lock client: unknown option 'scopes': it is `reentrant` now"),
  );
});
