import { expect, test } from "vitest";
import type { Lease, LockEvents } from "../../../src/index.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneLease, SceneProcess } from "./scene-process.ts";
import { outcomeOf, R } from "./steps.ts";

// A listener acts in the statement in which it is called: it starts a scope, or it unlocks what
// another caller has.

/** So long that nothing that ends by itself looks as if it had been released. */
const LEASE_TIME = 120_000;

/** The listener unlocks these in the statement in which the next event of that name is told. */
function unlocksAt({ client }: SceneProcess, event: keyof LockEvents, other: SceneLease): Promise<void>[] {
  const unlocking: Promise<void>[] = [];
  client.once(event, (() => void unlocking.push(other.unlock())) as LockEvents[typeof event]);
  return unlocking;
}

/** Another process has it at once. */
async function isFree({ timed }: Scene, next: Promise<SceneLease>): Promise<void> {
  const { result, took } = await timed(next);
  expect(took).toBeLessThan(100);
  await result.unlock();
}

/** How many callers use a lock at a time, at most. */
function user({ pass }: Scene) {
  const seen = { inside: 0, most: 0, tokens: new Set<number>() };
  const use = async (lease: Lease | null): Promise<void> => {
    if (!lease) throw new Error("the lock was busy");
    seen.most = Math.max(seen.most, ++seen.inside);
    seen.tokens.add(lease.token);
    await pass(10);
    seen.inside--;
    await lease.unlock();
  };
  return { use, seen };
}

test(
  "a listener starts a scope that another listener's signal interrupts: they have the lock one after the other",
  scene(async (world) => {
    const [{ client, ...process }] = world.processes(1);
    const { use, seen } = user(world);
    const lock = client.lock("of the listeners");
    const ending = await client.lock("ending").lock({ lease: 1_000 });
    const second = new Promise<void>((resolve, reject) => {
      ending.signal.addEventListener("abort", () => {
        lock.tryLock({ wait: 60_000 }).then(use).then(resolve, reject);
      });
    });
    const first = new Promise<void>((resolve, reject) => {
      client.once("acquire", () => {
        process.member.process.block(2_000);
        const own = client.scope(() => {
          const waiting = lock.lock();
          // Finds that this lease is over, and aborts its signal in this statement.
          expect(ending.signal.aborted).toBe(true);
          return waiting.then(use);
        });
        own.then(resolve, reject);
      });
    });
    await (await client.lock("another").lock()).unlock();
    await Promise.all([first, second]);
    expect([seen.most, seen.tokens.size]).toEqual([1, 2]);
    await ending.unlock().catch(() => {});
  }),
);

test(
  "a listener of a writer's release unlocks the reader of the same scope: the lock is free",
  scene(async (world) => {
    const [mine, theirs] = world.processes(2, { leaseTime: LEASE_TIME });
    await mine.scope(async () => {
      const [writer, reader] = [await mine.take("write"), await mine.take("read")];
      const unlocking = unlocksAt(mine, "release", reader);
      await writer.unlock();
      await Promise.all(unlocking);
      expect([unlocking.length, reader.held]).toEqual([1, false]);
    });
    await isFree(world, theirs.take("write"));
  }),
);

test(
  "a listener of a reader's release unlocks the other reader: both calls resolve, and the lock is free",
  scene(async (world) => {
    const [mine, theirs] = world.processes(2, { leaseTime: LEASE_TIME });
    const [first, second] = [await mine.take("read"), await mine.take("read")];
    const unlocking = unlocksAt(mine, "release", second);
    await first.unlock();
    await Promise.all(unlocking);
    expect(unlocking.length).toBe(1);
    await isFree(world, theirs.take("write"));
  }),
);

test(
  "a listener of a reader's release unlocks the other one of a cached hold: `kept` counts it once",
  scene(async (world) => {
    const [mine] = world.processes(1, { leaseTime: LEASE_TIME, linger: 1_000 });
    const [theirs] = world.processes(1);
    // Often enough that the client caches it.
    for (let i = 0; i < 50; i++) await (await mine.take("read")).unlock();
    const [first, second] = [await mine.take("read"), await mine.take("read")];
    const unlocking = unlocksAt(mine, "release", second);
    await first.unlock();
    await Promise.all(unlocking);
    expect([unlocking.length, mine.client.stats().kept]).toEqual([1, 1]);
    await isFree(world, theirs.take("write"));
    expect(mine.client.stats().kept).toBe(0);
  }),
);

test(
  "a listener of a permit's release gives the last one back: both calls resolve, and both are free",
  scene(async (world) => {
    const [mine, theirs] = world.processes(2, { leaseTime: LEASE_TIME });
    const [first, second] = await Promise.all([mine.take("semaphore"), mine.take("semaphore")]);
    const unlocking = unlocksAt(mine, "release", second);
    await first.unlock();
    await Promise.all(unlocking);
    expect(unlocking.length).toBe(1);
    await isFree(world, theirs.take("semaphore", { units: 3 }));
  }),
);

test(
  "a listener of one caller's loss finds that no caller of the same hold has it any more",
  scene(async (world) => {
    const [mine] = world.processes(1, { leaseTime: LEASE_TIME });
    const readers = [await mine.take("read"), await mine.take("read"), await mine.take("read")];
    const seen: boolean[][] = [];
    const look = (): void => void seen.push(readers.map(({ held }) => held));
    for (const { lease } of readers) lease.signal.addEventListener("abort", look);
    mine.client.on("lost", look);
    world.redis.drop("rw:a");
    await expect(readers[0]?.lease.extend(LEASE_TIME)).rejects.toMatchObject({ code: "LOCK_LOST" });
    expect(seen).toEqual(Array.from({ length: 6 }, () => [false, false, false]));
    for (const reader of readers) await reader.unlock().catch(() => {});
  }),
);

test(
  "a listener of one caller's `wait` aborts the other: `giveup` comes after the `wait` of the same call",
  scene(async (world) => {
    const [mine, theirs] = world.processes(2);
    const held = await theirs.take("lock");
    const enough = new AbortController();
    const told: (readonly [string, number])[] = [];
    mine.client.once("wait", () => enough.abort("enough"));
    for (const event of ["wait", "giveup", "acquire"] as const)
      mine.client.on(event, (({ call }: { call: number }) =>
        told.push([event, call])) as LockEvents[typeof event]);
    const [first, second] = [mine.take("lock"), mine.take("lock", { signal: enough.signal })];
    await expect(second).rejects.toBe("enough");
    await held.unlock();
    await (await first).unlock();
    const [call = 0] = told.map(([, one]) => one);
    expect(told).toEqual([
      ["wait", call],
      ["wait", call + 1],
      ["giveup", call + 1],
      ["acquire", call],
    ]);
  }),
);

test(
  "a listener of `acquire` makes a call: each call has a number of its own",
  scene(async (world) => {
    const [mine] = world.processes(1);
    const first = await mine.take("read");
    const calls: number[] = [];
    const made: Promise<SceneLease>[] = [];
    mine.client.on("acquire", ({ call }) => {
      calls.push(call);
      if (made.length < 3) made.push(mine.take("read"));
    });
    await (await mine.take("read")).unlock();
    const leases = [first, ...(await Promise.all(made))];
    expect([calls.length, new Set(calls).size]).toEqual([4, 4]);
    for (const lease of leases) await lease.unlock();
  }),
);

test(
  "a listener of one caller's `wait` aborts the other: later callers wait on, also after the time of a command",
  scene(async (world) => {
    const [mine] = world.processes(1);
    const [other] = world.processes(1);
    const held = await other.take("lock");
    const enough = new AbortController();
    mine.client.once("wait", () => enough.abort("enough"));
    const calls = [mine.take("lock"), mine.take("lock", { signal: enough.signal }), mine.take("lock")];
    const outcomes = calls.map((call) =>
      call.then(
        (lease) => lease.unlock(),
        (error: unknown) => error,
      ),
    );
    // A call that had asked for it would give up by then.
    await world.pass(12_000);
    await held.unlock();
    expect(await Promise.all(outcomes)).toEqual([undefined, "enough", undefined]);
  }),
);

test(
  "a caller that a listener starts when its lease ends has the lock next",
  scene(async (world) => {
    const [one] = world.processes(1);
    const lock = one.client.lock("of the listener");
    const calls: Promise<Lease | null>[] = [];
    one.client.on("acquire", () => {
      if (calls.length > 0) return;
      one.block(300);
      calls.push(lock.tryLock());
    });
    const both = one.does(() => Promise.all([lock.tryLock({ lease: 200 }), lock.tryLock()]));
    const [first, second] = await both;
    expect([first?.held, second]).toEqual([false, null]);
    const third = await calls[0];
    expect(third?.held).toBe(true);
    await third?.unlock();
  }),
);

test(
  "a refused caller calls again, and the lock is free just then: no lock is left without an owner",
  scene(async (world) => {
    const KEY = "redisson:a";
    const [one, other] = world.processes(2);
    one.heard("error");
    one.mayNotSubscribe();
    world.redis.overwriteByHash(KEY);
    const lock = one.member.process.product.redissonLock(one.client, KEY);
    const again: Promise<unknown>[] = [];
    one.client.on("giveup", () => {
      if (again.length === 0) again.push(lock.lock({ wait: 2_000 }).then((lease) => lease.unlock()));
    });
    // By the time of the refusal.
    one.client.once("wait", () => void world.redis.dropKey(KEY));
    expect(await outcomeOf(one.does(() => lock.lock()))).toEqual(["LOCK_UNAVAILABLE", undefined]);
    expect(again).toHaveLength(1);
    await Promise.allSettled(again);
    await world.pass(100);
    expect(world.redis.hash(KEY).size).toBe(0);
    await (await other.take("redissonLock")).unlock();
  }),
);

test(
  "a caller aborts when a listener reports its wait for its own client: it leaves no place behind",
  scene(async (world) => {
    const [one] = world.processes(1);
    const { timers } = one.member.process;
    const self = new AbortController();
    let isSlow = true;
    one.client.on("wait", ({ heldBy }) => {
      if (heldBy === "this client") self.abort("a deadlock of our own");
      else if (isSlow) {
        // The answer that queues it is read when two of its leases are over.
        isSlow = false;
        timers.setImmediate(() => one.block(60));
      }
    });
    const held = await one.take("lock of a shared name", { lease: 60_000 });
    const kind = "fairLock of a shared name";
    const first = one.take(kind, { lease: 10, signal: self.signal }).catch((reason: unknown) => reason);
    await world.until(() => self.signal.aborted);
    expect(await first).toBe("a deadlock of our own");
    const second = one.take(kind);
    await world.pass(2 * R);
    expect(world.redis.queue("mixed:a")).toEqual([one.number]);
    await held.unlock();
    await (await second).unlock();
  }),
);
