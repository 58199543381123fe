import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { LockEvents } from "../../src/index.ts";
import { handoffLua } from "../../src/redis/lua.generated.ts";
import { block } from "../support/block.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { keep, LINGERING } from "../support/stays.ts";
import { until } from "../support/until.ts";

// What a client does with a lock that nobody here is inside of: when it is kept, which callers may
// have it, and when it goes.

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
