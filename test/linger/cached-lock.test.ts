import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { LingerLearner } from "../../src/core/linger-learner.ts";
import type { Lease, LockEvents } from "../../src/index.ts";
import { handoffLua } from "../../src/redis/lua.generated.ts";
import { Gate, holdAnswer } from "../contract/observe.ts";
import { block } from "../support/block.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { timedAwake } from "../support/stage.ts";
import { keep, LINGERING, STAY_FRESH, STAY_WINDOW } from "../support/stays.ts";
import { until } from "../support/until.ts";

// What a client does with a lock that nobody here is inside of: when it is kept, which callers may
// have it, and when it goes.

/** ms: less than `linger`, and than a re-check. */
const AT_ONCE = 700;

const parties = new Parties();
let keeper: Party;
let other: Party;

beforeAll(async () => {
  keeper = await parties.join({ client: LINGERING });
  other = await parties.join();
  const name = freshName();
  await keep(keeper, name);
  await (await other.locks.lock(name).lock()).unlock();
});
afterAll(() => parties.close());

function heard<K extends keyof LockEvents>(event: K): Parameters<LockEvents[K]>[0][] {
  const all: Parameters<LockEvents[K]>[0][] = [];
  const hear = ((told: Parameters<LockEvents[K]>[0]) => void all.push(told)) as LockEvents[K];
  keeper.locks.on(event, hear);
  onTestFinished(() => void keeper.locks.off(event, hear));
  return all;
}

/** A name that is kept, and somebody who looks at it in Redis. */
async function kept(): Promise<Onlooker> {
  const lock = new Onlooker(other.redis, freshName());
  await keep(keeper, lock.name);
  return lock;
}

describe("a cached lock", () => {
  it("is acquired again without a command, with a larger token, and reported as `kept`", async () => {
    const { name } = await kept();
    const acquired = heard("acquire");
    const mine = keeper.locks.lock(name);
    const first = await mine.lock();
    await first.unlock();
    const again = await mine.tryLock();
    await again?.unlock();
    expect(again?.token).toBeGreaterThan(first.token);
    expect(acquired.map((event) => event.kept)).toContain(true);
    expect(keeper.locks.stats().takenAgain).toBeGreaterThan(0);
  });

  it("is busy for the next caller here while it is acquired again, without a command", async () => {
    const { name } = await kept();
    const mine = keeper.locks.lock(name);
    const again = await mine.tryLock();
    expect(again?.held).toBe(true);
    expect(await mine.tryLock()).toBeNull();
    const next = mine.lock();
    await again?.unlock();
    await (await next).unlock();
  });

  it("is busy at once for a caller that comes while a listener receives its acquire event", async () => {
    const { name } = await kept();
    const mine = keeper.locks.lock(name);
    let second: Promise<Lease | null> | undefined;
    const call = (told: { name: string }) => {
      if (told.name === name) second ??= mine.tryLock();
    };
    keeper.locks.on("acquire", call);
    onTestFinished(() => void keeper.locks.off("acquire", call));
    const again = await mine.tryLock();
    expect(again?.held).toBe(true);
    expect(await second).toBeNull();
    expect(again?.held).toBe(true);
    await again?.unlock();
  });

  it("is confirmed with Redis by a caller that finds the known state too old", async () => {
    const lock = await kept();
    await other.redis.del(lock.keys.lock);
    const at = performance.now();
    await until(() => performance.now() > at + STAY_FRESH);
    const lease = await keeper.locks.lock(lock.name).lock();
    expect(await lock.holder()).toContain(keeper.locks.id);
    await lease.unlock();
  });

  it("has saved half a pair of commands with a caller that had to ask Redis", async () => {
    const keeps = vi.spyOn(LingerLearner.prototype, "keeps");
    onTestFinished(() => keeps.mockRestore());
    const { name } = await kept();
    const saved = (): number => keeps.mock.calls.findLast(([of]) => of === name)?.[2] ?? Number.NaN;
    const before = saved();
    const at = performance.now();
    await until(() => performance.now() > at + 2 * STAY_FRESH);
    await (await keeper.locks.lock(name).lock()).unlock();
    expect(saved() - before).toBe(0.5);
  });

  it("is confirmed by a caller whose own lock object has no linger, and is released after it", async () => {
    const lock = await kept();
    await other.redis.del(lock.keys.lock);
    const lease = await keeper.locks.lock(lock.name, { linger: 0 }).lock();
    expect(await lock.holder()).toContain(keeper.locks.id);
    await lease.unlock();
    expect(await lock.holder()).toBe("");
  });

  it("is extended for a caller with a long lease of its own, and not cached afterwards", async () => {
    const lock = await kept();
    const lease = await keeper.locks.lock(lock.name).lock({ lease: 20_000 });
    expect(await lock.left()).toBeGreaterThan(STAY_WINDOW);
    await lease.unlock();
    expect(await lock.holder()).toBe("");
  });

  it("ends by itself, and leaves nothing", async () => {
    const lock = await kept();
    await lock.gone();
  });

  it("is lost after a force-release", async () => {
    const lock = await kept();
    const lost = heard("lost");
    // By the script alone: a client asks its holder first.
    const { lock: key, queue, clients, clock } = lock.keys;
    await other.redis.eval(handoffLua.forceRelease.lua, 4, key, queue, clients, clock, "");
    await until(() => lost.length > 0);
    expect(lost[0]).toMatchObject({ name: lock.name, heldFor: 0, error: { reason: "revoked" } });
  });

  it("is free after close()", async () => {
    const closing = await parties.join({ client: LINGERING });
    const lock = new Onlooker(other.redis, freshName());
    await keep(closing, lock.name);
    await closing.locks.close();
    expect(await lock.holder()).toBe("");
  });
});

it("a process that releases a cached lock late, because its event loop is blocked, is warned", async () => {
  const codes: unknown[] = [];
  const hear = (warning: Error & { code?: string }): void => void codes.push(warning.code);
  process.on("warning", hear);
  onTestFinished(() => void process.off("warning", hear));
  // Where this machine stands still by itself, the lock may not be kept when it is asked for.
  await until(async () => {
    const { name } = await kept();
    await (await keeper.locks.lock(name).lock()).unlock();
    const theirs = other.locks.lock(name).lock();
    block(850);
    await (await theirs).unlock();
    return codes.includes("LOCK_RECALLED_LATE");
  });
});

describe("a lock is not cached", () => {
  it("while an extension without a waiting caller is under way", async () => {
    const lock = await kept();
    const lease = await keeper.locks.lock(lock.name).lock();
    const extending = lease.extend(60_000).catch(() => {});
    await lease.unlock();
    await extending;
    expect(await lock.holder()).toBe("");
  });

  it("if it was wanted before the process read its grant", async () => {
    const keeps = vi.spyOn(LingerLearner.prototype, "keeps").mockReturnValue(true);
    onTestFinished(() => keeps.mockRestore());
    const name = freshName();
    const read = new Gate();
    const executed = holdAnswer(keeper.redis, read);
    const mine = keeper.locks.lock(name).lock();
    await executed;
    const theirs = timedAwake(other.locks.lock(name).lock());
    await new Onlooker(other.redis, name).queued(1);
    // What the client tells itself comes behind the recall.
    await keeper.locks.check();
    read.open();
    await (await mine).unlock();
    const [lease, waited] = await theirs;
    expect(waited).toBeLessThan(AT_ONCE);
    await lease.unlock();
  });

  it("by a multi-lock, which releases all of it", async () => {
    const locks = [await kept(), await kept()];
    const lease = await keeper.locks.multiLock(locks.map(({ name }) => name)).lock();
    expect(await Promise.all(locks.map((lock) => lock.holder()))).not.toContain("");
    await lease.unlock();
    expect(await Promise.all(locks.map((lock) => lock.holder()))).toEqual(["", ""]);
  });
});

it("callers that come and go in memory let the event loop turn", async () => {
  const { name } = await kept();
  const lock = keeper.locks.lock(name);
  const end = performance.now() + 300;
  let turns = 0;
  const turn = (): void => {
    turns++;
    if (performance.now() < end) setImmediate(turn);
  };
  setImmediate(turn);
  while (performance.now() < end) await (await lock.lock()).unlock();
  expect(turns).toBeGreaterThan(10);
});
