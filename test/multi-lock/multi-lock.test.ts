import { beforeAll, describe, expect, it } from "vitest";
import { LockError } from "../../src/index.ts";
import { redissonLock } from "../../src/redisson.ts";
import { Section } from "../contract/observe.ts";
import { countCommands } from "../support/command-count.ts";
import { freshName, type Party } from "../support/fixture.ts";
import { MultiLocks, three } from "../support/multi-locks.ts";
import { onScript } from "../support/scripts-sent.ts";

// Several locks as one: which ones they are, and taking all or none.

const several = new MultiLocks();
let mine: Party;
let theirs: Party;
beforeAll(() => {
  ({ mine, theirs } = several);
});

describe("the members", () => {
  it("are acquired in one order, each once, whatever order was given", async () => {
    const names = ["z", "ä", "B", "a", "a", "\u{1F512}", "\uFF5E"];
    const expected = ["B", "a", "z", "ä", "\u{1F512}", "\uFF5E"]; // by code units: no locale has a say
    expect(mine.locks.multiLock(names).names).toEqual(expected);
    expect(mine.locks.multiLock(names.reverse()).names).toEqual(expected);
  });

  it("may be locks of this client; protocols have an order too", () => {
    const { locks } = mine;
    const lock = locks.multiLock([redissonLock(locks, "a"), locks.fairLock("c"), "b", locks.lock("b")]);
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
      () => ["a", redissonLock(mine.locks, "a")],
      "'a' is named twice, as lock and as redissonLock",
    ],
  ])("are refused: %s", (_, members, message) => {
    expect(() => mine.locks.multiLock(members() as string[])).toThrow(
      `Cannot create a multi-lock: ${message}`,
    );
  });

  it("decide themselves about re-entrance: such options of the whole are refused", () => {
    const { locks } = mine;
    const loose = locks as unknown as { multiLock(members: unknown, options: unknown): unknown };
    for (const options of [{ reentrant: false }, {}, null, "b"])
      expect(() => loose.multiLock(["a", "b"], options)).toThrow(
        new TypeError(
          "Cannot create a multi-lock: it has no options of its own, each member has: multiLock([locks.lock(name, { reentrant: false }), …])",
        ),
      );
    expect(() => loose.multiLock("a", "b")).toThrow("it takes an array, received 'a'");
    loose.multiLock(["a", "b"], undefined);
  });

  it("must have names that a lock may have", () => {
    expect(() => mine.locks.multiLock(["a", ""])).toThrow("name must be a non-empty string");
  });

  it("are checked before anything is sent, and so are the options of a call", async () => {
    const lock = mine.locks.multiLock(["a", "b"]);
    const loose = lock as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
    const count = await countCommands(mine.redis);
    await expect(loose.tryLock?.(-1)).rejects.toThrow("Cannot lock 'a', 'b': wait must be");
    await expect(loose.tryLock?.(1, 2, "SECONDS")).rejects.toThrow("there is no time unit");
    await expect(loose.lock?.({ lease: 1 })).rejects.toThrow("lease must be");
    await expect(loose.withLock?.()).rejects.toThrow("withLock takes (body) or (options, body)");
    expect(() => loose.unlock?.()).toThrow("Cannot unlock 'a', 'b': a lock has no unlock()");
    expect(["inspect" in lock, "forceUnlock" in lock]).toEqual([false, false]);
    expect(await count.scripts()).toBe(0);
  });
});

describe("taking all", () => {
  it("costs two commands each without contention, explicit lease or watchdog, all of them at once", async () => {
    const names = three();
    const lock = mine.locks.multiLock(names);
    // The first acquires of a connection are another script: from the third call on the server
    // knows all of them.
    for (let i = 0; i < 2; i++) await (await lock.lock()).unlock();
    const count = await countCommands(mine.redis);
    await (await lock.lock()).unlock();
    await (await lock.tryLock(1_000, 20_000))?.unlock();
    await lock.withLock(() => {});
    expect(await count.scripts()).toBe(18);
    // Not one behind the answer of the other: a round trip for all.
    const { redis, locks } = await several.join();
    await (await locks.multiLock(names).lock()).unlock();
    const sent: number[] = [];
    let turn = 0;
    onScript(redis, (_, send) => {
      sent.push(turn);
      send();
    });
    const taking = locks.multiLock(names).lock();
    turn = 1;
    const lease = await taking;
    turn = 2;
    const giving = lease.unlock();
    turn = 3;
    await giving;
    expect(sent).toEqual([0, 0, 0, 2, 2, 2]);
    await several.gone(names);
  });

  it("gives one lease: tokens by name, one remaining time, one end", async () => {
    const names = three();
    const [a, b, c] = names;
    const lock = mine.locks.multiLock([c, a, b]);
    expect(await lock.isLocked()).toBe(false);
    const first = await lock.lock({ lease: 5_000 });
    expect([first.names, first.held, await lock.isLocked()]).toEqual([names, true, true]);
    expect(first.remaining).toBeGreaterThan(4_000);
    expect(first.remaining).toBeLessThanOrEqual(5_000);
    expect(await several.holders(names)).toEqual([mine.locks.id, mine.locks.id, mine.locks.id]);
    const tokens = [...first.tokens.values()];
    expect([[...first.tokens.keys()], new Set(tokens).size]).toEqual([names, 3]);
    await first.extend(60_000);
    expect(first.remaining).toBeGreaterThan(50_000);
    for (const name of names) expect(await several.look(name).left()).toBeGreaterThan(50_000);
    await expect(first.extend(1)).rejects.toThrow("Cannot extend the lease of");
    await first.unlock();
    await first.unlock();
    expect([first.held, first.remaining, first.signal.aborted]).toEqual([false, 0, false]);
    expect(() => first.assertHeld()).toThrow(LockError);
    const second = await lock.lock();
    for (const [i, name] of names.entries())
      expect(second.tokens.get(name)).toBeGreaterThan(tokens[i] ?? Number.POSITIVE_INFINITY);
    await second.unlock();
    await several.gone(names);
  });

  it("acquires nothing if one is held, and returns null after a round and a re-check", async () => {
    const names = three();
    const held = await theirs.locks.lock(names[1]).lock({ wait: 0 });
    const lock = mine.locks.multiLock(names);
    const count = await countCommands(mine.redis);
    expect(await lock.tryLock()).toBeNull();
    // three tries, the release of the first, and a look whether the second is free by now
    expect(await count.scripts()).toBe(5);
    expect(await several.holders(names)).toEqual(["", theirs.locks.id, ""]); // given back before the answer
    const early = await theirs.locks.lock(names[0]).lock({ wait: 0 });
    const again = await countCommands(mine.redis);
    expect(await lock.tryLock()).toBeNull();
    expect(await again.scripts()).toBe(3); // it got none: nobody else can have been stopped by it
    await early.unlock();
    await held.unlock();
    await several.gone(names);
  });

  it("costs 8 commands if the third of five is held, and one per further re-check", async () => {
    const names = Array.from({ length: 5 }, (_, i) => `${three()[0]}:${i}`).sort();
    const held = await theirs.locks.lock(names[2] ?? "").lock({ wait: 0 });
    const count = await countCommands(mine.redis);
    expect(await mine.locks.multiLock(names).tryLock()).toBeNull();
    expect(await count.scripts()).toBe(8);
    await held.unlock();
    await several.gone(names);
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
    await several.gone(names);
  });

  it("mixes fair and default locks, and Redisson's", async () => {
    const [a, b, c] = three();
    const members = (locks: Party["locks"]) => [redissonLock(locks, a), locks.fairLock(b), c];
    const lock = mine.locks.multiLock(members(mine.locks));
    const lease = await lock.lock();
    expect([lease.held, lease.names, [...lease.tokens.keys()]]).toEqual([true, [b, c, a], [b, c]]);
    expect(await theirs.locks.multiLock(members(theirs.locks)).tryLock(50)).toBeNull();
    expect(await redissonLock(theirs.locks, a).tryLock()).toBeNull();
    await lease.unlock();
    expect(await mine.redis.exists(a)).toBe(0);
    await several.gone([b, c]);
  });

  it("takes a hundred in one round trip", async () => {
    const names = Array.from({ length: 100 }, () => freshName("hundred"));
    const count = await countCommands(mine.redis);
    const lease = await mine.locks.multiLock(names).lock();
    expect(new Set(lease.tokens.values()).size).toBe(100);
    await lease.unlock();
    expect(await count.scripts()).toBeLessThanOrEqual(400); // each script may have been unknown to the server
    await several.gone(names);
  });
});
