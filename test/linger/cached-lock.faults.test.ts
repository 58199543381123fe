import { describe, expect, it } from "vitest";
import { Actor } from "../support/actor.ts";
import { freshName } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { timedAwake } from "../support/stage.ts";
import { LINGERING, STAY_WINDOW } from "../support/stays.ts";
import { AT_ONCE, besideKeepers, withKeeper } from "./keepers.ts";

// A process that caches a lock exits. What other faults do is in
// test/world/directed/cached-locks.test.ts.

const beside = besideKeepers();

/** How many keys commands have deleted since RESETSTAT: one for each release. */
async function deletions(): Promise<number> {
  const stats = await beside.here.redis.info("commandstats");
  return Number(/cmdstat_(?:del|unlink):calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

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

  it.each(["by SIGTERM without close()", "after `redis.quit()`"])(
    "that ends %s does not release it: others have it when its window is over",
    async (how) => {
      await withKeeper(beside, async ({ actor, lock }) => {
        if (how.includes("quit")) await actor.call("quitAndExit").catch(() => {});
        else {
          // It runs nothing more until the signal comes.
          actor.kill("SIGSTOP");
          await beside.here.redis.config("RESETSTAT");
          actor.kill("SIGTERM");
          actor.kill("SIGCONT");
        }
        await actor.exit;
        // It may be over by now.
        expect([await deletions(), (await lock.left()) <= STAY_WINDOW]).toEqual([0, true]);
        await (await beside.here.locks.lock(lock.name).lock()).unlock();
      });
    },
  );

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
