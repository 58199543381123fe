import { describe, expect, it } from "vitest";
import { Actor } from "../support/actor.ts";
import { freshName } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { timedAwake } from "../support/stage.ts";
import { LINGERING } from "../support/stays.ts";
import { AT_ONCE, besideKeepers, withKeeper } from "./keepers.ts";

// A process that caches a lock exits. What other faults do is in
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
