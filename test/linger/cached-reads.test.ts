import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { LingerLearner } from "../../src/core/linger-learner.ts";
import type { ReadWriteLock } from "../../src/index.ts";
import { LockManager } from "../../src/runtime/lock-manager.ts";
import { countCommands } from "../support/command-count.ts";
import { freshName, type Party } from "../support/fixture.ts";
import { heard, KeptReadsStage, keepAlways } from "../support/kept-reads.ts";
import { timedAwake } from "../support/stage.ts";
import { LINGERING } from "../support/stays.ts";
import { until } from "../support/until.ts";

// What readers of a process share stays with it when the last of them has left, until a writer
// wants the lock.

/** ms: less than `linger`, and than a re-check. */
const AT_ONCE = 500;
const MOST_TOLD = 16;

const stage = new KeptReadsStage();
const { keeps } = stage;
const pairOf = (party: Party): ReadWriteLock => stage.pairOf(party);
const keep = (party?: Party): Promise<ReadWriteLock> => stage.keep(party);
const holders = (): Promise<number> => stage.holders();

/** What the policies of all clients learn of reads from now on. */
function learned(): () => string[] {
  const ended = vi.spyOn(LingerLearner.prototype, "ended");
  onTestFinished(() => ended.mockRestore());
  return () => ended.mock.calls.filter(([name]) => name.startsWith("rw:")).map(([, how]) => how);
}

describe("cached reads", () => {
  it("are acquired again without a command, with the token of their phase, and reported as `kept`", async () => {
    const { near, far } = stage;
    const { read } = await keep();
    const acquired = heard(near, "acquire");
    // On a busy machine an answer may be too old by then: the next turn finds a fresh one.
    await until(async () => {
      acquired.length = 0;
      const commands = await countCommands(far.redis);
      const first = await read.lock();
      const second = await read.lock();
      await first.unlock();
      await second.unlock();
      if (near.locks.stats().kept === 0 || (await commands.scripts()) > 0) return false;
      expect(second.token).toBe(first.token);
      return true;
    });
    expect(acquired.map(({ kept }) => kept)).toEqual([true, false]);
    expect(near.locks.stats().recalled).toBe(0);
    expect(near.locks.stats().takenAgain).toBeGreaterThan(0);
  });

  it("go to a writer of another process as soon as it wants the lock, and are not cached for a while", async () => {
    const { near, far } = stage;
    const { read } = await keep();
    const recalls = heard(near, "recall");
    const [lease, waited] = await timedAwake(pairOf(far).write.lock());
    expect(waited).toBeLessThan(AT_ONCE);
    const old = await read.tryLock();
    expect(old).toBeNull();
    await lease.unlock();
    expect(recalls).toMatchObject([{ name: stage.lock.name, kind: "read", uses: 0 }]);
    keeps.mockRestore();
    await read.withLock(() => {});
    expect(near.locks.stats()).toMatchObject({ kept: 0, recalled: 1, recalledUnused: 1 });
    keepAlways();
  });

  it("are not locked while no reader is inside, and are released by recall()", async () => {
    const { far } = stage;
    const { read } = await keep();
    const seen = pairOf(far).read;
    expect([await seen.isLocked(), await read.isLocked()]).toEqual([false, false]);
    expect(await seen.inspect()).toMatchObject({ kept: true, waiters: [] });
    expect(await pairOf(far).inspect()).toMatchObject({ mode: "read", kept: true });
    const listed = [];
    for await (const one of far.locks.list()) if (one.name === seen.name) listed.push(one);
    expect(listed).toMatchObject([{ kind: "readWrite", kept: true }]);
    const lease = await read.lock();
    expect([await seen.isLocked(), await read.isLocked()]).toEqual([true, true]);
    // No writer has it: that is another question, though it is asked at the same time.
    expect(await Promise.all([pairOf(far).write.recall(), seen.recall()])).toEqual(["free", "busy"]);
    await lease.unlock();
    const other = await pairOf(far).read.lock();
    expect(await read.isLocked()).toBe(true);
    await other.unlock();
    expect(await seen.recall()).toMatch(/released|free/);
    expect(await holders()).toBe(0);
  });

  it("end by force-release, and when the subscription is lost", async () => {
    const { near, far, proxy } = stage;
    await keep();
    expect(await pairOf(far).read.forceUnlock()).toBe(true);
    await until(() => near.locks.stats().kept === 0);
    expect(await holders()).toBe(0);
    await pairOf(near).read.withLock(() => {});
    await until(() => near.locks.stats().kept === 1);
    proxy.cut("subscribers");
    await until(async () => (await holders()) === 0);
  });
});

it("a client caches at most 16 holds of a lock, and a writer recalls all of them at once", async () => {
  const { far } = stage;
  const parties = await Promise.all(
    Array.from({ length: MOST_TOLD + 1 }, () => stage.join({ client: LINGERING })),
  );
  for (const party of parties) await stage.warm(party);
  const ends = learned();
  await Promise.all(parties.map((party) => pairOf(party).read.withLock(() => {})));
  await nextTurn();
  expect(parties.filter(({ locks }) => locks.stats().kept === 1)).toHaveLength(MOST_TOLD);
  expect(await holders()).toBe(MOST_TOLD);
  expect(ends()).toEqual(["not kept"]);
  const [lease, waited] = await timedAwake(pairOf(far).write.lock());
  expect(waited).toBeLessThan(AT_ONCE);
  await lease.unlock();
});

it("a script does not search more than 256 holds for cached ones", async () => {
  const { near, far, key } = stage;
  await keep();
  const all = await far.redis.hgetall(key);
  const [, field = ""] = Object.entries(all).find(([hold]) => hold !== "=") ?? [];
  const channel = "holdfast:client:elsewhere:1:0123456789abcdef";
  const others = Array.from({ length: 256 }, (_, i) => `${channel}:${`${i}`.padStart(8, "0")}abcdefghijklm`);
  const books = (all["="] ?? "").replace(/^1c 0000001 (\d+) 00001/, "1c 0000257 $1 00257");
  await far.redis.hset(key, "=", books, ...others.flatMap((hold) => [hold, field.replace("+", "")]));
  const recalls = heard(near, "recall");
  await until(async () => {
    const commands = await countCommands(far.redis);
    expect(await pairOf(far).write.tryLock()).toBeNull();
    return (await commands.scripts()) === 1;
  });
  expect(recalls).toEqual([]);
  await far.redis.del(key);
});

it("nothing stays of the readers of a lock that only writers want, while other reads stay cached", async () => {
  const { near } = stage;
  await keep();
  const left = vi.spyOn(LockManager.prototype, "left");
  onTestFinished(() => left.mockRestore());
  const name = freshName();
  const { write } = near.locks.readWriteLock(name);
  await write.withLock(() => {});
  const manager = left.mock.contexts[0] as LockManager;
  const names = [...manager.resources()].map((lock) => lock.name);
  expect(names).toEqual([stage.lock.name]);
});
