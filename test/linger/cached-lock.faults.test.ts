import { describe, expect, it } from "vitest";
import { Actor } from "../support/actor.ts";
import { freshName } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { timedAwake } from "../support/stage.ts";
import { LINGERING } from "../support/stays.ts";
import { until } from "../support/until.ts";
import { AT_ONCE, besideKeepers, withKeeper } from "./keepers.ts";

// A process that caches a lock exits, or the server evicts the key. What other faults do is in
// test/world/directed/cached-locks.test.ts.

const beside = besideKeepers();

describe("a process that caches a lock", () => {
  it.each(["exit", "throw"] as const)("that ends by itself (%s) leaves it free", async (how) => {
    await withKeeper(beside, async (keeper) => {
      await keeper.actor.call("die", how).catch(() => {});
      await keeper.actor.exit;
      const [lease, waited] = await timedAwake(beside.here.locks.lock(keeper.lock.name).lock());
      expect(waited).toBeLessThan(AT_ONCE);
      await lease.unlock();
    });
  });

  it("that exits right after an unlock leaves the lock to the waiter", async () => {
    // As a server that was started a moment ago: a process that ends cannot send a script again
    // that is not known there.
    await beside.here.redis.script("FLUSH");
    const actor = await Actor.start({ url: beside.server.url, client: LINGERING });
    await actor.call("keep", freshName());
    const lock = new Onlooker(beside.here.redis, freshName());
    const mine = await actor.call("acquire", "lock", lock.name);
    const theirs = beside.here.locks.lock(lock.name).lock();
    await lock.queued(1);
    await actor.call("unlockAndExit", mine?.handle ?? -1).catch(() => {});
    await actor.exit;
    const [lease, waited] = await timedAwake(theirs);
    expect(waited).toBeLessThan(AT_ONCE);
    await lease.unlock();
  });
});

describe("the key of a cached lock is lost", () => {
  it("eviction: the next caller has it at once, alone", async () => {
    await withKeeper(beside, async (keeper) => {
      const { actor, lock } = keeper;
      await beside.here.redis.config("SET", "maxmemory-policy", "volatile-ttl");
      await beside.here.redis.config("SET", "maxmemory", "1");
      await beside.here.redis.set("more", "x".repeat(100)).catch(() => {});
      await beside.here.redis.config("SET", "maxmemory", "0");
      await beside.here.redis.config("SET", "maxmemory-policy", "noeviction");
      expect(await lock.holder()).toBe("");
      const lease = await beside.here.locks.lock(lock.name).lock();
      const before = Date.now();
      await until(() => Date.now() > before + 150);
      expect(await actor.call("acquire", "lock", lock.name, 0)).toBeNull();
      expect(lease.held).toBe(true);
      await lease.unlock();
    });
  });
});
