import { expect, it, vi } from "vitest";
import type { LockOptions, PermitLease } from "../../src/index.ts";
import { block } from "../support/block.ts";
import { used, waiting } from "../support/semaphores.ts";
import { PoolStage } from "./pooled.ts";

// A caller that has lost its permits may still be at work. A listener that is told of it may call
// at once, and gets them from Redis only. Here units are passed on however busy the machine is.
vi.mock("../../src/defaults.ts", async (all) => ({ ...((await all()) as object), PASS_TIME: 20_000 }));

const stage = new PoolStage();

/**
 * Of four permits one hold has three, for three callers of `mine`; these are the options of the
 * first of them.
 */
async function shared(options: LockOptions) {
  const pair = await stage.open(4);
  const held = await pair.theirs.acquire(4);
  const alone = pair.mine.acquire(1);
  await waiting(pair.theirs, 1);
  const all = [options, {}, {}].map((own) => pair.mine.acquire(1, own));
  await held.release();
  const leases = (await Promise.all(all)) as [PermitLease, PermitLease, PermitLease];
  return { ...pair, alone: await alone, leases };
}

it("lost permits are not handed off locally, also if a listener of the loss asks for them", async () => {
  const { mine, theirs, alone, leases } = await shared({ maxHold: 100 });
  const [first, second, third] = leases;
  const passed: unknown[] = [];
  const tried: Promise<PermitLease | null>[] = [];
  stage.near.locks.on("acquire", (told) => passed.push(told));
  stage.near.locks.once("lost", () => tried.push(mine.tryAcquire(2)));
  // Without a turn of the event loop no timer tells that its time is over.
  block(200);
  // What it leaves may be had by a caller that comes in this turn.
  const unlocked = second.release();
  expect(() => first.assertHeld()).toThrow(/lost/);
  expect([tried.length, passed]).toEqual([1, []]);
  await unlocked;
  await (await tried[0])?.release();
  await Promise.all([third.release(), alone.release()]);
  await used(theirs, 0);
});

it("a hold that Redis reports as gone has nothing for a listener of the loss", async () => {
  const { mine, theirs, alone, leases } = await shared({});
  const [first, second, third] = leases;
  const passed: boolean[] = [];
  const tried: Promise<PermitLease | null>[] = [];
  await stage.far.redis.del(`holdfast:semaphore:{${mine.name}}`);
  stage.near.locks.on("acquire", (told) => passed.push(told.passed));
  stage.near.locks.once("lost", () => {
    void second.release().catch(() => {});
    tried.push(mine.tryAcquire(1));
  });
  await expect(first.release()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "gone" });
  const [lease] = await Promise.all(tried);
  expect([lease?.held, passed]).toEqual([true, [false]]);
  await lease?.release();
  await Promise.allSettled([second.release(), third.release(), alone.release()]);
  await used(theirs, 0);
});
