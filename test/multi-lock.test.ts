import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isLockLost, LockError, LockLostError, LockTimeoutError, type MultiLease } from "../src/index.ts";
import { type LocalServer, launchServer } from "../tools/redis.ts";
import { failure, Gate, lossOf, Section } from "./contract/observe.ts";
import { countCommands } from "./support/command-count.ts";
import { failCommand } from "./support/failing-command.ts";
import { freshName, Parties, type Party } from "./support/fixture.ts";
import { trackUnhandled } from "./support/leaks.ts";
import { Onlooker } from "./support/onlooker.ts";
import { runs } from "./support/stage.ts";
import { until } from "./support/until.ts";

// A server of its own: it counts commands, and shows what is left.
const parties = new Parties();
let server: LocalServer;
let mine: Party;
let theirs: Party;
const quiet = trackUnhandled({ ignore: ["LOCK_SELF_WAIT"] });

beforeAll(async () => {
  server = await launchServer();
  [mine, theirs] = [await join(), await join()];
});
afterAll(async () => {
  const left = await mine.redis.keys("holdfast:*");
  await parties.close();
  await server.stop();
  await quiet.assertNone().finally(quiet.stop);
  expect(left).toEqual(["holdfast:clock"]);
});

const join = (client = {}): Promise<Party> => parties.join({ url: server.url, client });

/** Three names in their order. */
function three(): [string, string, string] {
  const name = freshName("multi");
  return [`${name}:a`, `${name}:b`, `${name}:c`];
}

const look = (name: string): Onlooker => new Onlooker(mine.redis, name);
const gone = (names: readonly string[]): Promise<unknown> =>
  Promise.all(names.map((name) => look(name).gone()));
const holders = (names: readonly string[]): Promise<string[]> =>
  Promise.all(names.map(async (name) => (await look(name).holder()).replace(/:\d+$/, "")));

describe("the members", () => {
  it("come in one order, each once, whatever was given", async () => {
    const names = ["z", "ä", "B", "a", "a", "\u{1F512}", "\uFF5E"];
    const expected = ["B", "a", "z", "ä", "\u{1F512}", "\uFF5E"]; // by code units: no locale has a say
    expect(mine.locks.multiLock(names).names).toEqual(expected);
    expect(mine.locks.multiLock(names.reverse()).names).toEqual(expected);
  });

  it("may be locks of this client; protocols have an order too", () => {
    const { locks } = mine;
    const lock = locks.multiLock([locks.redissonLock("a"), locks.fairLock("c"), "b", locks.lock("b")]);
    expect(lock.names).toEqual(["b", "c", "a"]);
  });

  it.each<[string, () => unknown, string]>([
    ["no array", () => "a", "it takes an array, received 'a'"],
    ["none", () => [], "it takes 1 to 100 locks, received 0"],
    [
      "too many",
      () => Array.from({ length: 101 }, (_, i) => `${i}`),
      "it takes 1 to 100 locks, received 101",
    ],
    ["a number", () => ["a", 5], "its members must be names, or locks of this client, received 5"],
    [
      "another client's lock",
      () => ["a", theirs.locks.lock("b")],
      "its members must be names, or locks of this client, received an object",
    ],
    [
      "one name as two kinds",
      () => ["a", mine.locks.fairLock("a")],
      "'a' is named twice, as lock and as fairLock",
    ],
    [
      "one name in two protocols",
      () => ["a", mine.locks.redissonLock("a")],
      "'a' is named twice, as lock and as redissonLock",
    ],
  ])("are refused: %s", (_, members, message) => {
    expect(() => mine.locks.multiLock(members() as string[])).toThrow(
      `Cannot create a multi-lock: ${message}`,
    );
  });

  it("must have names that a lock may have", () => {
    expect(() => mine.locks.multiLock(["a", ""])).toThrow("name must be a non-empty string");
  });

  it("are checked before anything is sent, and so is what a call asks for", async () => {
    const lock = mine.locks.multiLock(["a", "b"]);
    const loose = lock as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
    const count = await countCommands(mine.redis);
    await expect(loose.tryLock?.(-1)).rejects.toThrow("Cannot lock 'a', 'b': wait must be");
    await expect(loose.tryLock?.(1, 2, "SECONDS")).rejects.toThrow("there is no time unit");
    await expect(loose.lock?.({ lease: 1 })).rejects.toThrow("lease must be");
    await expect(loose.withLock?.()).rejects.toThrow("withLock takes a function");
    expect(() => loose.unlock?.()).toThrow("Cannot unlock 'a', 'b': a lock has no unlock()");
    expect(["inspect" in lock, "forceUnlock" in lock]).toEqual([false, false]);
    expect(await count.scripts()).toBe(0);
  });
});

describe("taking all", () => {
  it("costs two commands when nobody is in the way, explicit lease or watchdog", async () => {
    const names = three();
    const lock = mine.locks.multiLock(names);
    await (await lock.lock()).unlock();
    const count = await countCommands(mine.redis);
    await (await lock.lock()).unlock();
    await (await lock.tryLock(1_000, 20_000))?.unlock();
    await lock.withLock(() => {});
    expect(await count.scripts()).toBe(6);
    await gone(names);
  });

  it("gives one lease: tokens by name, the time that is left, one end", async () => {
    const names = three();
    const [a, b, c] = names;
    const lock = mine.locks.multiLock([c, a, b]);
    expect(await lock.isLocked()).toBe(false);
    const first = await lock.lock({ lease: 5_000 });
    expect([first.names, first.held, await lock.isLocked()]).toEqual([names, true, true]);
    expect(first.remaining()).toBeGreaterThan(4_000);
    expect(first.remaining()).toBeLessThanOrEqual(5_000);
    expect(await holders(names)).toEqual([mine.locks.id, mine.locks.id, mine.locks.id]);
    const tokens = names.map((name) => first.token(name));
    expect(new Set(tokens).size).toBe(3);
    expect(() => first.token("x")).toThrow(RangeError);
    await first.extend(60_000);
    expect(first.remaining()).toBeGreaterThan(50_000);
    for (const name of names) expect(await look(name).left()).toBeGreaterThan(50_000);
    await expect(first.extend(1)).rejects.toThrow("Cannot extend the lease of");
    await first.unlock();
    await first.unlock();
    expect([first.held, first.remaining(), first.signal.aborted]).toEqual([false, 0, false]);
    expect(() => first.assertHeld()).toThrow(LockError);
    const second = await lock.lock();
    for (const [i, name] of names.entries())
      expect(second.token(name)).toBeGreaterThan(tokens[i] ?? Number.POSITIVE_INFINITY);
    await second.unlock();
    await gone(names);
  });

  it("takes nothing when one is held, and says null after one command", async () => {
    const names = three();
    const held = await theirs.locks.lock(names[1]).lock();
    const lock = mine.locks.multiLock(names);
    const count = await countCommands(mine.redis);
    expect(await lock.tryLock()).toBeNull();
    expect(await count.scripts()).toBe(1);
    expect(await holders(names)).toEqual(["", theirs.locks.id, ""]);
    await held.unlock();
    await gone(names);
  });

  it("excludes single locks and other multi-locks, and is excluded by them", async () => {
    const names = three();
    const section = new Section();
    const work = [mine, theirs].flatMap(({ locks }) => [
      ...names.map((name) => locks.lock(name).withLock(async () => {})),
      locks.multiLock(names).withLock(section.visit),
      locks.multiLock([names[2], names[0]]).withLock(section.visit),
      locks.lock(names[0]).withLock(section.visit),
      locks.fairLock(names[0]).withLock(section.visit),
    ]);
    await Promise.all(work);
    expect(section).toMatchObject({ most: 1, visits: 8 });
    await gone(names);
  });

  it("does not pass by those who wait for a free member", async () => {
    const names = three();
    const crashed = await join();
    const held = await crashed.locks.lock(names[1]).lock({ lease: 30_000 });
    const waiting = theirs.locks.fairLock(names[1]).lock();
    await look(names[1]).queued(1);
    // Free, and waited for, as at the end of a lease.
    await mine.redis.del(look(names[1]).keys.lock);
    expect(await mine.locks.multiLock(names).tryLock()).toBeNull(); // its try gave the lock to who waits
    const asked = performance.now();
    const next = await waiting;
    expect(performance.now() - asked).toBeLessThan(350); // by message: a re-check would be 1.1 s away at the least
    await until(async () => (await holders(names)).join() === `,${theirs.locks.id},`);
    await next.unlock();
    await failure(held.unlock());
    await gone(names);
  });

  it("goes past places of the dead", async () => {
    const names = three();
    const { queue } = look(names[1]).keys;
    await mine.redis.zadd(queue, 1, "somebody who is gone");
    const lease = await mine.locks.multiLock(names).tryLock();
    expect(lease?.held).toBe(true);
    expect(await mine.redis.exists(queue)).toBe(0);
    await lease?.unlock();
    await gone(names);
  });

  it("mixes fair and default locks, and Redisson's", async () => {
    const [a, b, c] = three();
    const members = (locks: Party["locks"]) => [locks.redissonLock(a), locks.fairLock(b), c];
    const lock = mine.locks.multiLock(members(mine.locks));
    const lease = await lock.lock();
    expect([lease.held, lease.names, lease.token(a)]).toEqual([true, [b, c, a], 0]);
    expect(await theirs.locks.multiLock(members(theirs.locks)).tryLock(50)).toBeNull();
    expect(await theirs.locks.redissonLock(a).tryLock()).toBeNull();
    await lease.unlock();
    expect(await mine.redis.exists(a)).toBe(0);
    await gone([b, c]);
  });

  it("takes a hundred by one command", async () => {
    const names = Array.from({ length: 100 }, () => freshName("hundred"));
    const count = await countCommands(mine.redis);
    const lease = await mine.locks.multiLock(names).lock();
    expect(new Set(names.map((name) => lease.token(name))).size).toBe(100);
    await lease.unlock();
    expect(await count.scripts()).toBeLessThanOrEqual(4); // each script may have been unknown to the server
    await gone(names);
  });
});

describe("waiting", () => {
  it("keeps those before the one it waits for, none behind it; then has all", async () => {
    const names = three();
    const { locks } = await join();
    const held = await theirs.locks.lock(names[1]).lock();
    const waiting = locks.multiLock(names).lock();
    await look(names[1]).queued(1);
    await until(async () => (await holders(names)).join() === `${locks.id},${theirs.locks.id},`);
    const third = await theirs.locks.lock(names[2]).tryLock();
    expect(third).not.toBeNull();
    await held.unlock();
    await look(names[2]).queued(1);
    await third?.unlock();
    const lease = await waiting;
    expect(await holders(names)).toEqual([locks.id, locks.id, locks.id]);
    await lease.unlock();
    await gone(names);
  });

  it("has one time for all of them", async () => {
    const names = three();
    const [a, b] = names;
    const [first, second, third] = await Promise.all(names.map((name) => theirs.locks.lock(name).lock()));
    const asked = performance.now();
    let waited = 0;
    const error = failure(mine.locks.multiLock(names).lock({ wait: 500 })).finally(() => {
      waited = performance.now() - asked;
    });
    await until(() => performance.now() - asked > 400);
    await first?.unlock();
    // If the time began anew for the second, it would be waited for until 900 ms, then had, and the third named.
    await until(() => waited > 0 || performance.now() - asked > 750);
    await second?.unlock();
    expect(await error).toBeInstanceOf(LockTimeoutError);
    expect(waited).toBeGreaterThanOrEqual(499);
    expect(await error).toMatchObject({
      lockName: b,
      wait: 500,
      message: expect.stringContaining("and 2 more"),
    });
    await gone([a, b]); // given back
    await third?.unlock();
    await gone(names);
  });

  it("ends with the signal, at each step, and gives back what was taken", async () => {
    const names = three();
    for (const [at, busy] of names.entries()) {
      const held = await theirs.locks.lock(busy).lock();
      const controller = new AbortController();
      const call = failure(mine.locks.multiLock(names).lock({ signal: controller.signal }));
      await look(busy).queued(1);
      expect((await holders(names)).slice(0, at)).toEqual(Array(at).fill(mine.locks.id));
      controller.abort(`step ${at}`);
      expect(await call).toBe(`step ${at}`);
      await gone(names.filter((name) => name !== busy));
      await look(busy).queued(0);
      await held.unlock();
    }
    const controller = new AbortController();
    const early = failure(mine.locks.multiLock(names).lock({ signal: controller.signal }));
    controller.abort("before any answer");
    expect(await early).toBe("before any answer");
    expect(await failure(mine.locks.multiLock(names).lock({ signal: controller.signal }))).toBe(
      "before any answer",
    );
    await gone(names);
  });

  it("gives the whole of an explicit lease, counted from when all are held", async () => {
    const names = three();
    const held = await theirs.locks.lock(names[2]).lock();
    const waiting = mine.locks.multiLock(names).lock({ lease: 4_000 });
    await look(names[2]).queued(1);
    await until(async () => (await look(names[0]).left()) < 3_200, { what: "the first to wait" });
    await held.unlock();
    const lease = await waiting;
    expect(lease.remaining()).toBeGreaterThan(3_600);
    for (const name of names) expect(await look(name).left()).toBeGreaterThan(3_500);
    expect(await lossOf(lease.signal)).toBe("expired"); // no watchdog any more
    await failure(lease.unlock());
    await gone(names);
  });

  it("keeps what it has while it waits for longer than the lease", async () => {
    const names = three();
    const { locks } = await join({ leaseTime: 300 });
    const held = await theirs.locks.lock(names[2]).lock();
    const waiting = locks.multiLock(names).lock({ lease: 300 });
    await look(names[2]).queued(1);
    const { id } = locks;
    const start = performance.now();
    // The least that members live meanwhile is 3 s.
    await until(
      async () => {
        expect((await holders(names)).slice(0, 2)).toEqual([id, id]);
        return performance.now() - start > 3_500;
      },
      { what: "more than their lease" },
    );
    await held.unlock();
    const lease = await waiting;
    expect(lease.remaining()).toBeLessThanOrEqual(300);
    await lease.unlock();
    await gone(names);
  });

  it.each(["told", "not told"])("begins again when one was lost meanwhile (%s)", async (how) => {
    const names = three();
    const held = await theirs.locks.lock(names[2]).lock();
    const { locks } = await join();
    // Messages are heard from the first wait on.
    if (how === "told") await locks.lock(names[2]).tryLock(50);
    const lost: string[] = [];
    locks.on("lost", ({ name }) => lost.push(name));
    const waiting = locks.multiLock(names).lock();
    await look(names[2]).queued(1);
    const start = performance.now();
    expect(await theirs.locks.lock(names[0]).forceUnlock()).toBe(true);
    if (how === "told") await until(() => lost.length > 0, { what: "the loss" });
    else await until(() => performance.now() - start > 200, { what: "some time" });
    expect(lost.length).toBe(how === "told" ? 1 : 0);
    await held.unlock();
    const lease = await waiting;
    expect(lease.held).toBe(true);
    expect([await holders(names), lost]).toEqual([[locks.id, locks.id, locks.id], [names[0]]]);
    await lease.unlock();
    await gone(names);
  });

  it("is in nobody's way when two want the same in opposite orders", async () => {
    const [a, b] = three();
    const section = new Section();
    const rounds = async ({ locks }: Party, names: string[]) => {
      for (let i = 0; i < 150; i++) await locks.multiLock(names).withLock(section.visit, { wait: 15_000 });
    };
    const third = await join();
    await Promise.all([
      rounds(mine, [a, b]),
      rounds(theirs, [b, a]),
      rounds(third, [b, a]),
      rounds(third, [a, b]),
    ]);
    expect(section).toMatchObject({ most: 1, visits: 600 });
    await gone([a, b]);
  });
});

describe("a loss", () => {
  it.each(["forced", "deleted", "expired"] as const)(
    "of one aborts the one signal, names it, and the others are released (%s)",
    async (how) => {
      const names = three();
      const { locks } = await join({ leaseTime: 600 });
      const bodyError = new Error("stopped");
      const errors: LockLostError[] = [];
      locks.on("lost", ({ error }) => errors.push(error));
      const error = await failure(
        locks.multiLock(names).withLock(
          async (lease) => {
            if (how === "forced") await theirs.locks.lock(names[1]).forceUnlock();
            if (how === "deleted") await mine.redis.del(look(names[1]).keys.lock);
            await lossOf(lease.signal);
            expect([lease.held, lease.remaining()]).toEqual([false, 0]);
            expect(() => lease.assertHeld()).toThrow(LockLostError);
            throw bodyError;
          },
          how === "expired" ? { lease: 100 } : {},
        ),
      );
      expect(error).toBeInstanceOf(LockLostError);
      const lockName = how === "expired" ? expect.any(String) : names[1];
      expect(error).toMatchObject({
        lockName,
        reason: how === "expired" ? "expired" : "gone",
        cause: bodyError,
      });
      expect(errors).toHaveLength(how === "expired" ? 3 : 1);
      await gone(names);
    },
  );

  it("of one taken while its client hears messages is told at once", async () => {
    const names = three();
    const { locks } = await join();
    const other = freshName();
    const held = await theirs.locks.lock(other).lock();
    expect(await locks.lock(other).tryLock(50)).toBeNull(); // it has a subscriber now
    await held.unlock();
    const lease = await locks.multiLock(names).lock();
    await theirs.locks.lock(names[2]).forceUnlock();
    expect(await lossOf(lease.signal)).toBe("revoked");
    expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST", lockName: names[2] });
    await lease.unlock();
    await gone(names);
  });

  it("of several is an AggregateError that isLockLost looks through", async () => {
    const names = three();
    const lease = await mine.locks.multiLock(names).lock();
    await mine.redis.del(look(names[0]).keys.lock, look(names[2]).keys.lock);
    const error = await failure(lease.unlock());
    expect(error).toBeInstanceOf(AggregateError);
    expect((error as AggregateError).errors).toMatchObject([{ lockName: names[0] }, { lockName: names[2] }]);
    expect(isLockLost(error)).toBe(true);
    await gone(names);
  });

  it("of one leaves withLock's body with its result unless it was lost: kept → the result", async () => {
    const names = three();
    expect(await mine.locks.multiLock(names).withLock(() => 42)).toBe(42);
    const bodyError = new Error("of the body");
    const failed = mine.locks.multiLock(names).withLock(() => {
      throw bodyError;
    });
    expect(await failure(failed)).toBe(bodyError);
    await gone(names);
  });
});

describe("a release that fails", () => {
  it("of one leaves the others released, and its error is told as it is", async () => {
    const names = three();
    const lease = await mine.locks.multiLock(names).lock();
    await mine.redis.hset(look(names[1]).keys.queue, "not", "a queue");
    const error = await failure(lease.unlock());
    expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE", lockName: names[1] });
    expect((error as Error).message).toContain("WRONGTYPE");
    expect(await holders(names)).toEqual(["", mine.locks.id, ""]);
    await mine.redis.del(look(names[1]).keys.queue);
    await gone(names); // tried again behind
  });

  it("of a command for several is told for each of them, and nothing stays", async () => {
    const names = three();
    const held = await theirs.locks.lock(names[0]).lock();
    const { locks, redis } = await join();
    const waiting = locks.multiLock(names).lock();
    await look(names[0]).queued(1);
    await held.unlock();
    const lease = await waiting;
    const failed = failCommand(redis, "before", runs("releaseAll"));
    const error = await failure(lease.unlock());
    await failed;
    // The first came by its turn, and was released by a command of its own.
    expect((error as AggregateError).errors).toMatchObject(
      names.slice(1).map((lockName) => ({ code: "LOCK_UNAVAILABLE", lockName })),
    );
    expect(isLockLost(error)).toBe(false);
    await gone(names);
  });
});

describe("scopes", () => {
  it("know every member: nested single locks, smaller and equal multi-locks borrow, and send nothing", async () => {
    const names = three();
    const [a, b, c] = names;
    const { locks } = mine;
    const lock = locks.multiLock(names);
    const section = new Section();
    await lock.withLock(async (outer) => {
      const count = await countCommands(theirs.redis);
      expect([lock.isHeldHere(), locks.lock(b).isHeldHere(), locks.multiLock([a, "x"]).isHeldHere()]).toEqual(
        [true, true, false],
      );
      await locks.lock(b).withLock((inner) => expect(inner.token).toBe(outer.token(b)));
      await lock.withLock((inner) => expect(inner.token(c)).toBe(outer.token(c)));
      await Promise.all([
        locks.multiLock([a, b]).withLock(section.visit),
        lock.withLock(section.visit),
        locks.lock(b).withLock(section.visit),
      ]);
      const again = await locks.multiLock([c, b]).lock();
      expect(again.token(b)).toBe(outer.token(b));
      await again.unlock();
      expect([outer.held, section.most, section.visits]).toEqual([true, 1, 3]);
      expect(await count.scripts()).toBe(0);
    });
    expect(lock.isHeldHere()).toBe(false);
    await gone(names);
  });

  it("let a multi-lock take what comes behind what they hold", async () => {
    const names = three();
    const [a, , c] = names;
    await mine.locks.lock(a).withLock(async (single) => {
      await mine.locks.multiLock(names).withLock(async (all) => {
        expect(all.token(a)).toBe(single.token);
        expect(await holders(names)).toEqual(Array(3).fill(mine.locks.id));
      });
      expect(await holders([a, c])).toEqual([mine.locks.id, ""]);
      const again = await mine.locks.multiLock(names).lock({ lease: 60_000 });
      expect(again.remaining()).toBeGreaterThan(50_000);
      await again.unlock();
      expect(single.held).toBe(true);
    });
    await gone(names);
  });

  it("refuse a multi-lock that would wait for what comes before what they hold; without waiting it is tried", async () => {
    const names = three();
    const [a, , c] = names;
    await mine.locks.lock(c).withLock(async () => {
      const lock = mine.locks.multiLock(names);
      for (const call of [() => lock.lock(), () => lock.tryLock(5), () => lock.withLock(() => {})])
        expect(await failure(call())).toMatchObject({ code: "LOCK_ORDER", lockName: a });
      const lease = await lock.tryLock();
      expect(lease?.held).toBe(true);
      await lease?.unlock();
      const held = await theirs.locks.lock(a).lock();
      expect(await lock.tryLock()).toBeNull();
      await held.unlock();
      expect(mine.locks.lock(c).isHeldHere()).toBe(true);
    });
    await gone(names);
  });

  it("wait for a turn to borrow no longer than asked, and leave all gates open afterwards", async () => {
    const names = three();
    const [a, b] = names;
    const gate = new Gate();
    const lock = mine.locks.multiLock(names);
    await lock.withLock(async () => {
      const borrowing = mine.locks.lock(b).withLock(() => gate.passed);
      const error = await failure(lock.withLock({ wait: 50 }, () => {}));
      expect(error).toMatchObject({ code: "LOCK_TIMEOUT", lockName: b });
      await mine.locks.lock(a).withLock(() => {});
      gate.open();
      await borrowing;
      await lock.withLock(() => {});
    });
    await gone(names);
  });

  it("release what was left behind, and say so for each", async () => {
    const names = three();
    const { locks } = await join();
    const errors: unknown[] = [];
    locks.on("error", (error) => errors.push(error));
    let lease: MultiLease | undefined;
    await locks.scope(async () => {
      lease = await locks.multiLock(names).lock();
    });
    expect(errors).toMatchObject(names.map((lockName) => ({ code: "LOCK_LEFT_BEHIND", lockName })));
    expect(lease?.held).toBe(false);
    await gone(names);
  });

  it("in which a member was lost reject nested acquisitions", async () => {
    const names = three();
    const { locks } = await join({ leaseTime: 600 });
    const lock = locks.multiLock(names);
    const seen: unknown[] = [];
    const outer = failure(
      lock.withLock(async ({ signal }) => {
        await mine.redis.del(look(names[1]).keys.lock);
        await lossOf(signal);
        seen.push(await failure(lock.lock()), await failure(lock.withLock(() => {})));
      }),
    );
    expect(await outer).toBeInstanceOf(LockLostError);
    expect(seen).toMatchObject([{ lockName: names[1] }, { lockName: names[1] }]);
    await gone(names);
  });
});

describe("the client", () => {
  it("tells of every member's life", async () => {
    const names = three();
    const { locks } = await join({ leaseTime: 300 });
    const told: string[] = [];
    for (const event of ["acquire", "renew", "release"] as const)
      locks.on(event, ({ name }: { name: string }) => told.push(`${event} ${name}`));
    const lease = await locks.multiLock(names).lock();
    await until(() => told.filter((one) => one.startsWith("renew")).length >= 6, {
      what: "two renewals of all",
    });
    expect(lease.held).toBe(true);
    await lease.unlock();
    const of = (event: string) => [...new Set(told.filter((one) => one.startsWith(event)))].sort();
    for (const event of ["acquire", "renew", "release"])
      expect(of(event)).toEqual(names.map((name) => `${event} ${name}`));
    await gone(names);
  });

  it("that closes refuses who waits, lets holders finish, and takes the rest", async () => {
    const names = three();
    const others = three();
    const third = three();
    const closing = await join();
    const finishing = await closing.locks.multiLock(others).lock();
    const staying = await closing.locks.multiLock(third).lock();
    const held = await theirs.locks.lock(names[1]).lock();
    const waiting = failure(closing.locks.multiLock(names).lock());
    await look(names[1]).queued(1);
    const closed = closing.locks.close({ grace: 300 });
    expect(await waiting).toMatchObject({ code: "CLIENT_CLOSED" });
    expect(await failure(closing.locks.multiLock(names).tryLock())).toMatchObject({ code: "CLIENT_CLOSED" });
    await finishing.unlock();
    expect(staying.held).toBe(true); // for as long as the grace
    await closed;
    expect(await lossOf(staying.signal)).toBe("closed");
    expect(await failure(staying.unlock())).toBeInstanceOf(AggregateError);
    await held.unlock();
    await gone([...names, ...others, ...third]);
  });

  it("gives the end of a lease to whoever waits for a member, also in its own process", async () => {
    const names = three();
    const lease = await mine.locks.multiLock(names).lock();
    const waiting = [
      mine.locks.lock(names[0]).lock(),
      theirs.locks.lock(names[1]).lock(),
      mine.locks.fairLock(names[2]).lock(),
    ];
    for (const name of names) await look(name).queued(1);
    const start = performance.now();
    await lease.unlock();
    for (const next of await Promise.all(waiting)) await next.unlock();
    expect(performance.now() - start).toBeLessThan(350); // by message: a re-check would be 1.1 s away at the least
    await gone(names);
  });
});
