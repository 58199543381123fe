import { expect, test } from "vitest";
import type { Lease, LockOptions, PermitLease, Semaphore } from "../../../src/index.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";

// A caller that has lost its hold may still be at work. A listener that is told of the loss may call
// at once, and gets what it wants from Redis only.

/**
 * Of four permits one hold has three, for three callers of `mine`: `options` are those of the first
 * of them. `alone` has the fourth one.
 */
async function shared({ pass }: Scene, mine: SceneProcess, theirs: SceneProcess, options: LockOptions) {
  const [own, others] = [mine, theirs].map(({ client }) => client.semaphore("four", { permits: 4 })) as [
    Semaphore,
    Semaphore,
  ];
  const all = await theirs.does(() => others.acquire(4));
  const head = mine.does(() => own.acquire());
  await pass(100);
  const waiting = [options, {}, {}].map((given) => mine.does(() => own.acquire(1, given)));
  await pass(1);
  await theirs.does(() => all.release());
  const [alone, ...leases] = await Promise.all([head, ...waiting]);
  const { holders } = await theirs.does(() => others.inspect());
  expect(holders.map(({ units }) => units).sort()).toEqual([1, 3]);
  return { own, others, alone, leases: leases as [PermitLease, PermitLease, PermitLease] };
}

test(
  "lost permits are not handed off locally, also if a listener of the loss asks for them",
  scene(async (world) => {
    const [mine, theirs] = world.processes(2);
    // Sooner than permits are handed on no more: 25 ms.
    const { own, others, alone, leases } = await shared(world, mine, theirs, { maxHold: 10 });
    const [first, second, third] = leases;
    const passed: unknown[] = [];
    const tried: Promise<PermitLease | null>[] = [];
    mine.client.on("acquire", (told) => passed.push(told));
    mine.client.once("lost", () => tried.push(own.tryAcquire(2)));
    await mine.does(async () => {
      // No timer has run: its first statement finds that its time is over.
      mine.block(12);
      // What it leaves may be had by a caller that comes in this turn.
      const unlocked = second.release();
      expect(() => first.assertHeld()).toThrow(/lost/);
      expect([tried.length, passed]).toEqual([1, []]);
      await unlocked;
    });
    await (await tried[0])?.release();
    await third.release();
    await alone?.release();
    await world.pass(5);
    expect(await others.inspect()).toMatchObject({ used: 0, waiters: [] });
  }),
);

test(
  "a hold of permits that Redis reports as gone has nothing for a listener of the loss",
  scene(async (world) => {
    const [mine, theirs] = world.processes(2);
    const { own, others, alone, leases } = await shared(world, mine, theirs, {});
    const [first, second, third] = leases;
    const passed: boolean[] = [];
    const tried: Promise<PermitLease | null>[] = [];
    world.redis.dropKey("holdfast:semaphore:{four}");
    mine.client.on("acquire", (told) => passed.push(told.passed));
    mine.client.once("lost", () => {
      void second.release().catch(() => {});
      tried.push(own.tryAcquire(1));
    });
    await expect(mine.does(() => first.release())).rejects.toMatchObject({
      code: "LOCK_LOST",
      reason: "gone",
    });
    const [lease] = await Promise.all(tried);
    expect([lease?.held, passed]).toEqual([true, [false]]);
    await lease?.release();
    await Promise.allSettled([second, third, alone].map((one) => one?.release()));
    await world.pass(5);
    expect((await others.inspect()).used).toBe(0);
  }),
);

test(
  "a hold of readers that Redis reports as gone admits no reader that a listener of the loss starts",
  scene(async (world) => {
    const [mine] = world.processes(1);
    const { client } = mine;
    const { read } = client.readWriteLock("rw:a");
    const passed: boolean[] = [];
    const tried: Promise<Lease | null>[] = [];
    const others: Lease[] = [];
    const body = async (): Promise<void> => {
      others.push(await client.outside(() => read.lock()));
      world.redis.drop("rw:a");
      client.on("acquire", (told) => passed.push(told.passed));
      client.once("lost", () => tried.push(client.outside(() => read.tryLock())));
    };
    const over = mine.does(() => read.withLock({ confirm: true }, body));
    await expect(over).rejects.toMatchObject({ code: "LOCK_LOST" });
    const [lease] = await Promise.all(tried);
    expect([lease?.held, passed]).toEqual([true, [false]]);
    await lease?.unlock();
    await others[0]?.unlock().catch(() => {});
  }),
);
