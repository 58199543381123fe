import { afterAll, describe, expect, it } from "vitest";
import { type LockClient, LockLostError } from "../../src/index.ts";
import { Keys } from "../../src/redis/keys.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { running } from "../support/result-runs.ts";
import { until } from "../support/until.ts";

// What the errors of a lock that is held too long, or lost, say of the cause.

const parties = new Parties();
afterAll(parties.close);

/**
 * The lock's value when it is another client's, and has been somebody's without a gap since long
 * after our hold.
 */
const OTHERS =
  "10 9000000000000001 9000000000000000 holdfast:client:host:1:0123456789abcdef:000000010123456789abc";

const failure = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);

describe("LockLostError says what ran out, and after how long", () => {
  it("the clocks are not blamed when the lease has merely ended", async () => {
    const { locks } = await parties.join();
    const lost: string[] = [];
    locks.on("lost", ({ error }) => lost.push(error.message));
    await Promise.all(
      Array.from({ length: 50 }, (_, i) => locks.lock(freshName()).lock({ lease: 2_000 + i })),
    );
    await until(() => lost.length === 50);
    expect(lost.filter((message) => !/ s ran out before it was released/.test(message))).toEqual([]);
  });

  it.for([
    ["gone", "DEL"],
    ["taken", "SET"],
  ] as const)("%s names forceUnlock() among the causes", async ([reason, command]) => {
    const { locks, redis } = await parties.join();
    const name = freshName();
    const { keys } = new Onlooker(redis, name);
    const lease = await locks.lock(name).lock();
    if (command === "DEL") await redis.del(keys.lock);
    else await redis.set(keys.lock, OTHERS, "PX", 500);
    const error = await failure(lease.unlock());
    expect(error).toMatchObject({ reason, message: expect.stringContaining("forceUnlock()") });
  });
});

describe("a client whose leases are below 100 ms", () => {
  it("is warned once, because the number is usually meant in seconds", async () => {
    const seen: (Error & { code?: string })[] = [];
    const watch = (warning: Error & { code?: string }) => seen.push(warning);
    process.on("warning", watch);
    for (let i = 0; i < 2; i++) await parties.join({ url: testUrl(), client: { leaseTime: 30 } });
    await until(() => seen.length > 0);
    process.off("warning", watch);
    expect(seen).toMatchObject([{ code: "LOCK_SHORT_LEASE", message: expect.stringContaining("30 ms") }]);
  });
});

interface Taken {
  assertHeld(): void;
  unlock(): Promise<unknown>;
}

/** The runs that have learned of their end. */
const stopped = new Set<string>();

/** How each thing that is no plain lock is taken, released, and taken away from under its holder. */
const THINGS: readonly {
  readonly noun: string;
  readonly take: (locks: LockClient, name: string, wait: number) => Promise<Taken>;
  readonly late: RegExp;
  /** Left out: by forceUnlock(), which it has. */
  readonly keyOf?: (name: string) => string;
  readonly force?: (locks: LockClient, name: string) => Promise<unknown>;
  /** What does it. Default: forceUnlock(). */
  readonly ends?: string;
}[] = [
  {
    noun: "Semaphore",
    take: async (locks, name, wait) => {
      const lease = await locks.semaphore(name, { permits: 1 }).acquire({ wait });
      return { assertHeld: () => lease.assertHeld(), unlock: () => lease.release() };
    },
    late: /^Semaphore '\S+' had too few free permits for this call \(wants 1\) when .*: \S+:\d+ has some; .*tryAcquire\(\)/,
    force: (locks, name) => locks.semaphore(name).forceUnlock(),
  },
  {
    noun: "Read lock",
    take: (locks, name, wait) => locks.readWriteLock(name).read.lock({ wait }),
    late: /^Read lock '\S+' was still held by \S+:\d+, or waited for by a writer, when `wait` \(20 ms\) was over: .*tryLock\(\)/,
    force: (locks, name) => locks.readWriteLock(name).read.forceUnlock(),
  },
  {
    noun: "Write lock",
    take: (locks, name, wait) => locks.readWriteLock(name).write.lock({ wait }),
    late: /^Write lock '\S+' was still held by \S+:\d+ when `wait` \(20 ms\) was over: .*tryLock\(\)/,
    force: (locks, name) => locks.readWriteLock(name).write.forceUnlock(),
  },
  {
    noun: "Election",
    take: async (locks, name, wait) => {
      const term = await locks.election(name).campaign({ wait });
      return { assertHeld: () => term.assertHeld(), unlock: () => term.resign() };
    },
    late: /^Election '\S+' was still led by \S+ when `wait` \(20 ms\) was over: wait longer, or ask leader\(\)/,
    keyOf: (name) => new Keys("", false).ofElection(name).lock,
  },
  {
    noun: "The run of",
    take: async (locks, name, wait) => {
      const { run, ran, ended } = await running(locks, name, { wait });
      const unlock = async () => {
        ran("done");
        const end = await ended;
        if (end instanceof Error) throw end;
      };
      run.signal.addEventListener("abort", () => stopped.add(name));
      return { assertHeld: () => run.assertHeld(), unlock };
    },
    late: /^The run of '\S+' was still under way in \S+:\d+ when `wait` \(20 ms\) was over: wait longer, or treat/,
    force: async (locks, name) => {
      await locks.stopRun(name);
      await until(() => stopped.has(name));
    },
    ends: "stopRun()",
  },
  {
    noun: "The turn of",
    take: async (locks, name) => {
      let [begun, end] = [(_: Taken) => {}, () => {}];
      const taken = new Promise<Taken>((resolve) => {
        begun = resolve;
      });
      const ended = new Promise<void>((resolve) => {
        end = resolve;
      });
      const run = locks.runOnce(name, { every: 3_600_000 }, (turn) => {
        const unlock = () => {
          end();
          return run;
        };
        begun({ assertHeld: () => turn.assertHeld(), unlock });
        return ended;
      });
      return Promise.race([taken, run.then(() => expect.unreachable())]);
    },
    late: /never/,
    keyOf: (name) => new Keys("", false).ofOnce(name),
  },
];

describe.each(THINGS)(
  "errors name their subject: $noun",
  ({ noun, take, late, keyOf, force, ends = "forceUnlock()" }) => {
    it("lost, late, given back, without Redis", async () => {
      const [near, far] = await Promise.all([parties.join(), parties.join()]);
      const name = freshName();
      const named = `${noun} '${name}' `;
      const holder =
        noun === "Read lock" ? far.locks.readWriteLock(name).write.lock() : take(far.locks, name, 0);
      const held = await holder;
      if (noun !== "The turn of")
        expect(await failure(take(near.locks, name, 20))).toMatchObject({
          name: "LockTimeoutError",
          message: expect.stringMatching(late),
        });
      await held.unlock();
      expect(() => held.assertHeld()).toThrow(
        expect.objectContaining({ code: "LOCK_RELEASED", message: expect.stringContaining("is over") }),
      );

      const other = freshName();
      const lost = await take(near.locks, other, 1_000);
      if (keyOf) await far.redis.del(keyOf(other));
      else await force?.(far.locks, other);
      const loss = (await failure(lost.unlock())) as Error;
      expect(loss).toBeInstanceOf(LockLostError);
      expect(loss.message).toContain(`${noun} '${other}' was lost: `);
      expect(loss.message.includes(ends)).toBe(keyOf === undefined);

      const { redis, locks } = await parties.join({ redis: { retryStrategy: () => null } });
      redis.disconnect();
      await until(() => redis.status === "end");
      expect(await failure(take(locks, name, 0))).toMatchObject({
        code: "LOCK_UNAVAILABLE",
        message: expect.stringContaining(`${named}is unavailable: `),
      });
    });
  },
);

it("what a scope or close() finds still held is named by its kind", async () => {
  const { locks } = await parties.join();
  const told: string[] = [];
  locks.on("error", ({ message }) => told.push(message));
  const [first, second] = [freshName(), freshName()];
  await locks.scope(() => locks.semaphore(first, { permits: 1 }).acquire());
  await locks.readWriteLock(first).write.lock();
  await locks.lock(second).lock();
  await locks.close({ grace: 1 });
  expect(told[0]).toContain(`Semaphore '${first}' was still held when the scope in which it was taken ended`);
  expect(told[1]).toMatch(
    /while these were still held, .*: write lock '\S+' \(for \d+ ms\), '\S+' \(for \d+ ms\); give them back before/,
  );
});
