import { describe, expect, test } from "vitest";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { inTurn, outcomeOf, parked, warm } from "./steps.ts";

// A reply is lost, the driver reconnects and sends the command again: every script is executed twice.
// Or the network delivers the first copy later.

async function pair(world: Scene): Promise<[SceneProcess, SceneProcess]> {
  const [near, far] = world.processes(2, { localHandoffs: 0 });
  await warm(world, near, far);
  await warm(world, far, near);
  return [near, far];
}

/** The reply to the next such command is lost, and the command is executed again. */
function twice(
  near: SceneProcess,
  command: string,
  back = 20,
): { lost: Promise<void>; again: Promise<void> } {
  const lost = near.on(command).executed(() => near.commands.cut({ back }));
  return { lost, again: lost.then(() => near.on(command).executed()) };
}

describe("the reply is lost and the command is sent again", () => {
  test(
    "acquire: it does not block itself",
    scene(async (world) => {
      const [near] = await pair(world);
      const { again } = twice(near, "acquire");
      const taking = near.take("lock");
      await again;
      const { result: lease, took } = await world.timed(taking);
      expect(took).toBeLessThan(1);
      await lease.unlock();
      expect(world.redis.holders("lock:a")).toEqual([]);
    }),
  );

  test(
    "acquire that queues: one entry, and its turn comes",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const held = await far.take("lock");
      const { again } = twice(near, "acquire");
      const waiting = near.take("lock");
      await again;
      await world.pass(5);
      expect(world.redis.queue("lock:a")).toEqual([near.number]);
      await held.unlock();
      await inTurn(world, waiting);
    }),
  );

  test(
    "release without a waiter: no loss is reported",
    scene(async (world) => {
      const [near] = await pair(world);
      const held = await near.take("lock");
      const { again } = twice(near, "release");
      const unlocking = held.unlock();
      await again;
      await unlocking;
      expect(world.redis.holders("lock:a")).toEqual([]);
    }),
  );

  test(
    "release with a waiter: the waiter is not released too, and no loss is reported",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const { held, waiting } = await parked(world, near, [far]);
      const { again } = twice(near, "release");
      const unlocking = held.unlock();
      const next = await waiting[0];
      await again;
      await unlocking;
      expect([next.held, world.redis.holders("lock:a")]).toEqual([true, [far.number]]);
      await next.unlock();
    }),
  );

  test(
    "release that is executed again after two more callers had the lock: no loss is reported",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const [third] = world.processes(1);
      const { held, waiting } = await parked(world, near, [far, third]);
      const { again } = twice(near, "release", 500);
      const unlocking = held.unlock();
      await (await waiting[0]).unlock();
      const last = await waiting[1];
      await again;
      await unlocking;
      expect(last.held).toBe(true);
      await last.unlock();
    }),
  );

  test(
    "yield: the lock goes round, one holder at a time",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const { held, waiting } = await parked(world, near, [far]);
      const own = [near.take("lock"), near.take("lock")];
      await world.pass(20);
      const { again } = twice(near, "yield");
      const unlocking = held.unlock();
      const all = [...waiting, ...own].map(async (one) => {
        const lease = await one;
        await world.pass(10);
        await lease.unlock();
      });
      await again;
      await unlocking;
      await Promise.all(all);
      expect([world.redis.holders("lock:a"), world.redis.queue("lock:a")]).toEqual([[], []]);
    }),
  );

  test(
    "renew: a claim, and an extension",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const { held, waiting } = await parked(world, far, [near], { lease: 20_000 });
      const claim = twice(near, "renew");
      await held.unlock();
      await claim.again;
      const lease = await waiting[0];
      expect(lease.lease.remaining).toBeGreaterThan(15_000);
      const extension = twice(near, "renew");
      const extending = lease.lease.extend(25_000);
      await extension.again;
      await extending;
      expect(lease.lease.remaining).toBeGreaterThan(20_000);
      await lease.unlock();
    }),
  );

  test(
    "leave: the waiter is out of the queue, and the holder keeps the lock",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const held = await far.take("lock");
      const enough = new AbortController();
      const left = near.take("lock", { signal: enough.signal }).catch((reason: unknown) => reason);
      await world.pass(20);
      const { again } = twice(near, "leave");
      enough.abort("enough");
      expect(await left).toBe("enough");
      await again;
      expect([world.redis.queue("lock:a"), world.redis.holders("lock:a")]).toEqual([[], [far.number]]);
      await held.unlock();
    }),
  );

  test(
    "force-release: only the first holder loses it",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const held = await far.take("lock");
      const { again } = twice(near, "force-release");
      const forcing = near.does(() => near.client.lock("lock:a").forceUnlock());
      await again;
      // The answer of the second copy.
      expect(await forcing).toBe(false);
      expect((await outcomeOf(held.unlock()))?.[0]).toBe("LOCK_LOST");
    }),
  );
});

describe("a late copy changes nothing", () => {
  /** The next such command is sent again, and its first copy arrives `ms` later. */
  const copied = (near: SceneProcess, command: string, ms: number): Promise<void> =>
    near
      .on(command)
      .sent(() => near.commands.cut({ copies: ms, back: 5 }))
      .then(() => near.on(command).executed());

  /** The state just before the copy, and just after it. */
  async function expectNoChange(world: Scene, near: SceneProcess, command: string): Promise<void> {
    const arrived = near.on(command).executed();
    let isThere = false;
    void arrived.then(() => {
      isThere = true;
    });
    let before = world.redis.state("lock:a");
    while (!isThere) {
      before = world.redis.state("lock:a");
      await world.pass(0.1);
    }
    expect(world.redis.state("lock:a")).toEqual(before);
  }

  test(
    "of an acquire, after its time: it is stale",
    scene(async (world) => {
      const [near] = await pair(world);
      const copy = copied(near, "acquire", 6_000);
      const taking = near.take("lock");
      await copy;
      await (await taking).unlock();
      await expectNoChange(world, near, "acquire");
      expect(world.redis.holders("lock:a")).toEqual([]);
    }),
  );

  test(
    "of the acquire that queued: its caller has held the lock and is gone",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const held = await far.take("lock");
      const copy = copied(near, "acquire", 6_000);
      const waiting = near.take("lock");
      await copy;
      await held.unlock();
      await (await waiting).unlock();
      const other = await far.take("lock");
      await expectNoChange(world, near, "acquire");
      await other.unlock();
    }),
  );

  test(
    "of the acquire that queued: while its caller still waits in that place",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const held = await far.take("lock");
      const copy = copied(near, "acquire", 500);
      const waiting = near.take("lock");
      await copy;
      await expectNoChange(world, near, "acquire");
      expect(world.redis.queue("lock:a")).toEqual([near.number]);
      await held.unlock();
      await inTurn(world, waiting);
    }),
  );

  test.each(["free", "held"] as const)(
    "of a re-check: its place was granted and given back, and the lock is %s",
    (ends) =>
      scene(async (world) => {
        const [near, far] = await pair(world);
        const { held, waiting } = await parked(world, far, [near]);
        await copied(near, "recheck", 500);
        await held.unlock();
        await (await waiting[0]).unlock();
        const other = ends === "held" ? await far.take("lock") : null;
        await expectNoChange(world, near, "recheck");
        await other?.unlock();
      })(),
  );

  test(
    "of a release that handed over: the next holder keeps the lock",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const { held, waiting } = await parked(world, near, [far]);
      const copy = copied(near, "release", 500);
      const unlocking = held.unlock();
      await copy;
      await unlocking;
      const next = await waiting[0];
      await expectNoChange(world, near, "release");
      expect(next.held).toBe(true);
      await next.unlock();
    }),
  );

  test(
    "of a release does not touch a later hold of the same process",
    scene(async (world) => {
      const [near] = await pair(world);
      const held = await near.take("lock");
      const copy = copied(near, "release", 500);
      const unlocking = held.unlock();
      await copy;
      await unlocking;
      const second = await near.take("lock");
      await expectNoChange(world, near, "release");
      expect(world.redis.holders("lock:a")).toEqual([near.number]);
      await second.unlock();
    }),
  );

  test.each(["free", "held"] as const)(
    "of a yield: the old hold ended, the new one had its turn, and the lock is %s",
    (ends) =>
      scene(async (world) => {
        const [near, far] = await pair(world);
        const { held, waiting } = await parked(world, near, [far]);
        const own = near.take("lock");
        await world.pass(20);
        const copy = copied(near, "yield", 500);
        const unlocking = held.unlock();
        await copy;
        await unlocking;
        await (await waiting[0]).unlock();
        await (await own).unlock();
        const later = ends === "held" ? await far.take("lock") : null;
        await expectNoChange(world, near, "yield");
        await later?.unlock();
      })(),
  );

  test(
    "of a leave: its client waits and holds again, with other holds",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const held = await far.take("lock");
      const enough = new AbortController();
      const left = near.take("lock", { signal: enough.signal }).catch((reason: unknown) => reason);
      await world.pass(20);
      const copy = copied(near, "leave", 500);
      enough.abort("enough");
      expect(await left).toBe("enough");
      await copy;
      const waiting = near.take("lock");
      await world.pass(20);
      await expectNoChange(world, near, "leave");
      await held.unlock();
      await inTurn(world, waiting);
    }),
  );

  test(
    "of a renewal: it does not shorten a longer lease",
    scene(async (world) => {
      const [near] = await pair(world);
      near.member.leaseTime = 60_000;
      const held = await near.take("lock", { lease: 5_000 });
      const copy = copied(near, "renew", 500);
      const extending = held.lease.extend(6_000);
      await copy;
      await extending;
      await held.lease.extend(60_000);
      await expectNoChange(world, near, "renew");
      expect(world.redis.left("lock:a")).toBeGreaterThan(55_000);
      await held.unlock();
    }),
  );

  test(
    "of a renewal: it does not revive an ended lease, nor extend that of another caller",
    scene(async (world) => {
      const [near, far] = await pair(world);
      near.member.leaseTime = 60_000;
      const held = await near.take("lock", { lease: 5_000 });
      const copy = copied(near, "renew", 500);
      const extending = held.lease.extend(60_000);
      await copy;
      await extending;
      await held.unlock();
      const other = await far.take("lock", { lease: 5_000 });
      await expectNoChange(world, near, "renew");
      expect(world.redis.left("lock:a")).toBeLessThanOrEqual(5_000);
      await other.unlock();
    }),
  );

  test(
    "of a claim: its caller has unlocked, and another caller holds the lock",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const { held, waiting } = await parked(world, far, [near], { lease: 60_000 });
      const copy = copied(near, "renew", 500);
      await held.unlock();
      await copy;
      await (await waiting[0]).unlock();
      const other = await far.take("lock", { lease: 5_000 });
      await expectNoChange(world, near, "renew");
      expect(world.redis.left("lock:a")).toBeLessThanOrEqual(5_000);
      await other.unlock();
    }),
  );
});

describe("a late copy that has an effect", () => {
  test(
    "of a force-release takes the lock from its holder of that moment, which notices",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const held = await far.take("lock");
      const cut = near.on("force-release").sent(() => near.commands.cut({ copies: 500, back: 5 }));
      const forcing = near.does(() => near.client.lock("lock:a").forceUnlock());
      await cut;
      await near.on("force-release").executed();
      expect(await forcing).toBe(true);
      expect((await outcomeOf(held.unlock()))?.[0]).toBe("LOCK_LOST");
      const second = await far.take("lock");
      await near.on("force-release").executed();
      expect(world.redis.holders("lock:a")).toEqual([]);
      expect((await outcomeOf(second.unlock()))?.[0]).toBe("LOCK_LOST");
    }),
  );

  test(
    "of a fair lock's acquire before its deadline owns a hold without a caller: others wait for its lease",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const cut = near.on("acquire").sent(() => near.commands.cut({ copies: 500, back: 5 }));
      const taking = near.take("fairLock", { lease: 2_000 });
      await cut;
      await near.on("acquire").executed();
      await (await taking).unlock();
      await near.on("acquire").executed();
      expect(world.redis.holders("fair:a")).toEqual([near.number]);
      const { result: next, took } = await world.timed(far.take("fairLock"));
      expect(took).toBeGreaterThan(1_900);
      expect(took).toBeLessThan(2_100);
      await next.unlock();
    }),
  );
});

describe("an abandoned command leaves no key behind", () => {
  test(
    "by replyTimeout",
    scene(async (world) => {
      const [near] = await pair(world);
      world.redis.pause(6_000);
      expect(await outcomeOf(near.take("lock", { wait: 1_000 }))).toEqual(["LOCK_UNAVAILABLE", undefined]);
      await world.pass(7_000);
      expect(world.redis.keys("lock:a")).toEqual([]);
    }),
  );

  test(
    "by a closed connection whose commands are not sent again",
    scene(async (world) => {
      const [near] = await pair(world);
      near.losesCommands("fail");
      const cut = near.on("acquire").executed(() => near.commands.cut({ back: 2_000 }));
      const call = outcomeOf(near.take("lock", { wait: 1_000 }));
      await cut;
      expect(await call).toEqual(["LOCK_UNAVAILABLE", undefined]);
      await world.pass(3_000);
      expect(world.redis.keys("lock:a")).toEqual([]);
    }),
  );
});
