import { describe, expect, test } from "vitest";
import { cachedBy, comesSoon, FRESH, granted, LINGER, S, three, use } from "./caching.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneLease, SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, outcomeOf, warm } from "./steps.ts";

// docs/guarantees.md, "Cached locks"; docs/protocol.md, "Stays" and "Idle".

/** Fourteen other locks. */
const NAMES = [..."bcdefghijklmno"];

/** The same, and the first one has just cached the lock. */
async function kept(world: Scene): Promise<[SceneProcess, SceneProcess, SceneProcess]> {
  const all = await three(world);
  await use(all[0]);
  expect(all[0].client.stats().kept).toBe(1);
  return all;
}

/** It is used so often that it is worth caching, whichever process has had it. */
async function worthIt(world: Scene): Promise<[SceneProcess, SceneProcess, SceneProcess]> {
  const all = await kept(world);
  for (let i = 0; i < 5; i++) await use(all[0]);
  return all;
}

describe("a cached lock that is taken again", () => {
  test(
    "events and stats() say whether that took a round trip",
    scene(async (world) => {
      const [one] = await kept(world);
      const acquired = one.heard("acquire");
      await use(one);
      await world.pass(3 * FRESH);
      await use(one);
      expect(acquired).toMatchObject([
        { passed: true, kept: true },
        { passed: true, kept: false },
      ]);
      expect(one.client.stats()).toMatchObject({ kept: 1, takenAgain: 1 });
    }),
  );

  test(
    "all the time, also after it was new when others were renewed: no caller waits for a renewal",
    scene(async (world) => {
      const [one] = await three(world);
      // Those in use are renewed 50 ms after this.
      for (let i = 0; i < 2; i++) await use(one, { name: "b" });
      await world.pass(40);
      await use(one);
      for (let i = 0; i < 40; i++) {
        const { result: lease, took } = await world.timed(one.take("lock"));
        expect(took).toBe(0);
        await lease.unlock();
        await world.pass(5);
      }
    }),
  );

  test(
    "callers come and go without end: messages are read before the next one has it",
    scene(async (world) => {
      const [one, other] = await kept(world);
      const order: string[] = [];
      const lock = one.client.lock("lock:a");
      const read = one.onMessage("recall", () => order.push("message"));
      const next = one.does(async () => {
        await (await lock.lock()).unlock();
        // Its message comes meanwhile.
        const waiting = other.take("lock");
        one.block(5);
        const lease = await lock.lock();
        order.push("caller");
        await lease.unlock();
        return { waiting };
      });
      await read;
      await (await (await next).waiting).unlock();
      expect(order).toEqual(["message", "caller"]);
    }),
  );

  test(
    "after a pause: it is renewed for S only, and stays cached",
    scene(async (world) => {
      const [one] = await kept(world);
      await world.pass(3 * FRESH);
      await use(one);
      expect(one.client.stats().kept).toBe(1);
      expect(world.redis.left("lock:a")).toBeLessThanOrEqual(S);
    }),
  );

  test(
    "and renewed: another process that calls tryLock() without `wait` still has it",
    scene(async (world) => {
      const [one, other] = await kept(world);
      await use(one);
      await world.pass(2 * FRESH);
      expect(world.redis.left("lock:a")).toBeLessThanOrEqual(S);
      const lease = await other.tryTake("lock");
      expect(lease).not.toBeNull();
      await lease?.unlock();
    }),
  );

  test(
    "after a pause, as the first one of a multi-lock: the next one is asked for at the same time",
    scene(async (world) => {
      const [one] = await kept(world);
      await world.pass(3 * FRESH);
      const asked = world.timed(one.on("acquire").sent());
      const lease = await one.takeAll(["lock:a", "lock:b"]);
      expect((await asked).took).toBeLessThan(0.1);
      await one.does(() => lease.unlock());
    }),
  );

  test(
    "by callers that hand it to no other caller: they have it without a round trip, too",
    scene(async (world) => {
      const [one] = world.processes(1, { linger: LINGER, localHandoffs: 0 });
      const [other] = world.processes(1);
      await warm(world, one, other);
      await use(one);
      // After a renewal: no tokens are reserved for them.
      await use(one);
      const { result: lease, took } = await world.timed(one.take("lock"));
      expect(took).toBe(0);
      await lease.unlock();
    }),
  );

  test(
    "by a caller with `linger: 0`: it is not cached after that",
    scene(async (world) => {
      const [one] = await kept(world);
      const lease = await one.does(() => one.client.lock("lock:a", { linger: 0 }).lock());
      await one.does(() => lease.unlock());
      await world.pass(1);
      expect(cachedBy(world, one)).toEqual([0, []]);
    }),
  );
});

describe("an unlocked lock", () => {
  test(
    "for which another caller waits here is given to that one",
    scene(async (world) => {
      const [one] = await kept(world);
      const inside = await one.take("lock");
      const waiting = one.take("lock");
      await world.pass(10);
      await inside.unlock();
      await (await comesSoon(world, waiting)).unlock();
    }),
  );

  test(
    "that another process has only tried during a body stays cached",
    scene(async (world) => {
      const [one, other] = await kept(world);
      const inside = await one.take("lock");
      expect(await other.tryTake("lock")).toBeNull();
      expect(await other.does(() => other.client.lock("lock:a").isLocked())).toBe(true);
      await inside.unlock();
      await world.pass(10);
      expect(cachedBy(world, one)).toEqual([1, [one.number]]);
    }),
  );

  test(
    "of a process that receives no messages any more is not cached",
    scene(async (world) => {
      const [one, other] = await worthIt(world);
      one.messages.cut({ back: 60_000 });
      await use(other);
      await use(one, { lease: 2_000 });
      await world.pass(1);
      expect(cachedBy(world, one)).toEqual([0, []]);
      await use(other);
    }),
  );

  test(
    "that another process began to want during a short body is released at once",
    scene(async (world) => {
      const [one, other] = await three(world);
      const inside = await one.take("lock");
      const waiting = other.take("lock");
      await world.pass(50);
      await inside.unlock();
      await (await comesSoon(world, waiting)).unlock();
      expect(one.client.stats()).toMatchObject({ recalled: 0, recalledUnused: 0 });
    }),
  );

  test(
    "that another process has given to this one is not cached the first time",
    scene(async (world) => {
      const [one, other] = await three(world);
      await (await granted(world, one, other)).unlock();
      await world.pass(1);
      expect(cachedBy(world, one)).toEqual([0, []]);
    }),
  );

  test(
    "that another process has given to this one, and is worth it, is cached: Redis is told to notify this process",
    scene(async (world) => {
      const [one, other] = await worthIt(world);
      await (await granted(world, one, other)).unlock();
      await world.pass(10);
      expect(one.client.stats().kept).toBe(1);
      await (await comesSoon(world, other.take("lock"))).unlock();
    }),
  );

  test(
    "for which a process waits that came after a tryLock() of another one, during a body, is released at once",
    scene(async (world) => {
      const [one, other, third] = await three(world);
      const inside = await one.take("lock");
      const tried = other.on("acquire").executed();
      const busy = other.tryTake("lock");
      await tried;
      await other.on("acquire").executed();
      const waiting = third.take("lock");
      expect(await busy).toBeNull();
      await world.pass(10);
      expect(world.redis.queue("lock:a")).toEqual([third.number]);
      await inside.unlock();
      await (await comesSoon(world, waiting)).unlock();
    }),
  );

  test(
    "that was taken again stays, although caching others has not been worth it",
    scene(async (world) => {
      const [one, other] = await kept(world);
      for (const name of NAMES) {
        await use(one, { name });
        await use(other, { name });
        await use(one);
      }
      expect(one.client.stats()).toMatchObject({ kept: 1, takenAgain: NAMES.length });
    }),
  );

  test(
    "that was used only after round trips is not worth caching when another process wants it",
    scene(async (world) => {
      const [one, other] = await kept(world);
      for (let i = 0; i < 2; i++) {
        await world.pass(3 * FRESH);
        await use(one);
      }
      await use(other);
      await use(one);
      expect(one.client.stats().kept).toBe(0);
    }),
  );

  test.each([
    ["a body was inside", true],
    ["it was cached", false],
  ])(
    "and a message was missed, and the connection broke, while %s: another process has it soon",
    (_, isInside) =>
      scene(async (world) => {
        const [one, other] = await three(world);
        const inside = await one.take("lock");
        if (!isInside) await inside.unlock();
        one.messages.freezeReplies(10_000);
        const waiting = other.take("lock");
        await world.pass(5);
        one.commands.cut();
        await world.pass(30);
        if (isInside) await inside.unlock();
        const { result, took } = await world.timed(waiting);
        expect(took).toBeLessThan(BY_MESSAGE);
        await result.unlock();
      })(),
  );

  test(
    "whose acquisition was answered late is renewed for S only, and cached",
    scene(async (world) => {
      const [one] = await three(world);
      const late = one.on("acquire").executed(() => one.commands.freezeReplies(S / 2 + 100));
      const taking = one.take("lock");
      await late;
      const lease = await taking;
      expect(world.redis.left("lock:a")).toBeLessThanOrEqual(S);
      await lease.unlock();
      expect(one.client.stats().kept).toBe(1);
    }),
  );

  test(
    "with an explicit lease of more than S is not cached, and is taken by one command",
    scene(async (world) => {
      const [one] = await three(world);
      const { sent } = one;
      const lease = await one.take("lock", { lease: 10_000 });
      expect(one.sent).toBe(sent + 1);
      expect(world.redis.left("lock:a")).toBeGreaterThan(S);
      await lease.unlock();
      expect(one.client.stats().kept).toBe(0);
    }),
  );

  test(
    "of a process that receives no messages yet has the full lease, and the next one is cached",
    scene(async (world) => {
      const [one] = world.processes(1, { linger: LINGER });
      const lease = await one.tryTake("lock");
      expect(world.redis.left("lock:a")).toBeGreaterThan(S);
      await lease?.unlock();
      await world.pass(10);
      await use(one);
      expect(one.client.stats().kept).toBe(1);
    }),
  );

  test(
    "whose bodies are too long, and whose callers do not come back, has the full lease from the start",
    scene(async (world) => {
      const [one, other] = await three(world);
      await (await granted(world, one, other)).unlock();
      await world.pass(1);
      const long = await one.take("lock");
      await world.pass(FRESH + 50);
      await long.unlock();
      const next = await one.take("lock");
      expect(world.redis.left("lock:a")).toBeGreaterThan(S);
      await next.unlock();
    }),
  );

  test(
    "that stays is unlocked twice: both calls resolve",
    scene(async (world) => {
      const [one] = await three(world);
      const lease = await one.does(() => one.client.lock("lock:a").lock());
      await one.does(() => Promise.all([lease.unlock(), lease.unlock()]));
      expect(one.client.stats().kept).toBe(1);
    }),
  );

  test(
    "while its client closes is free at once",
    scene(async (world) => {
      const [one, other] = await three(world);
      const inside = await one.take("lock");
      const closing = one.does(() => one.client.close({ grace: 2_000 }));
      await world.pass(50);
      await inside.unlock();
      expect((await world.timed(closing)).took).toBeLessThan(BY_MESSAGE);
      await use(other);
    }),
  );

  test(
    "that was lost, and is not cached: unlock() rejects",
    scene(async (world) => {
      const [one, other] = await three(world);
      const lease = await granted(world, one, other, { lease: 1_000 });
      await world.pass(500);
      world.redis.drop("lock:a");
      expect(await outcomeOf(lease.unlock())).toEqual(["LOCK_LOST", "gone"]);
    }),
  );
});

describe("a caller that comes right back to a lock that is not cached", () => {
  /** One caller unlocks it, and the next one takes it in the same turn. */
  const comeBack = (one: SceneProcess, { lease, unlock }: SceneLease, linger = LINGER) =>
    one.does(() => {
      void unlock();
      return one.client.lock(lease.name, { linger }).lock();
    });

  test(
    "has it without a round trip, and keeps it",
    scene(async (world) => {
      const [one, other] = await three(world);
      const lease = await granted(world, one, other);
      const acquired = one.heard("acquire");
      const { result: next, took } = await world.timed(comeBack(one, lease));
      expect([took, acquired[0]?.kept]).toEqual([0, true]);
      await world.pass(10);
      expect([next.held, world.redis.holders("lock:a")]).toEqual([true, [one.number]]);
      await one.does(() => next.unlock());
    }),
  );

  test(
    "and then another process wants it: stats() does not count that as a recall of a cached lock",
    scene(async (world) => {
      const [one, other] = await three(world);
      const lease = await granted(world, one, other);
      const next = await comeBack(one, lease);
      const waiting = other.take("lock");
      // A renewal reports it: the lock was granted by message.
      await world.pass(FRESH - 20);
      await one.does(() => next.unlock());
      await (await comesSoon(world, waiting)).unlock();
      expect(one.client.stats()).toMatchObject({ recalled: 0, recalledUnused: 0 });
    }),
  );

  test(
    "with `linger: 0` has it after a round trip",
    scene(async (world) => {
      const [one, other] = await three(world);
      const lease = await granted(world, one, other);
      const { result: next, took } = await world.timed(comeBack(one, lease, 0));
      expect(took).toBeGreaterThan(0);
      await one.does(() => next.unlock());
    }),
  );

  test(
    "has it without a round trip, also where others have recalled it",
    scene(async (world) => {
      const [one, other] = await kept(world);
      await use(other);
      const lease = await one.take("lock");
      const { result: next, took } = await world.timed(comeBack(one, lease));
      expect([took, one.client.stats().kept]).toEqual([0, 0]);
      await one.does(() => next.unlock());
    }),
  );

  test.each([
    ["most callers come back: unlock() does not wait for Redis", true],
    ["no caller comes back: unlock() waits for Redis", false],
  ])("%s", (_, comesBack) =>
    scene(async (world) => {
      const [one, other] = await three(world);
      for (const name of NAMES) {
        const lease = await granted(world, one, other, { name });
        if (!comesBack) await lease.unlock();
        else {
          const next = await comeBack(one, lease);
          await one.does(async () => {
            await next.unlock();
            await (await one.client.lock(next.name).lock()).unlock();
          });
        }
        await world.pass(1);
      }
      const last = await granted(world, one, other, { name: "z" });
      const { took } = await world.timed(last.unlock());
      if (comesBack) expect(took).toBe(0);
      else expect(took).toBeGreaterThan(0);
    })(),
  );
});

describe("the end of a cached lock", () => {
  test(
    "is counted by stats(), and `recall` says how often the lock was used",
    scene(async (world) => {
      const [one, other] = await kept(world);
      const recalled = one.heard("recall");
      for (let i = 0; i < 3; i++) await use(one);
      await use(other);
      expect(recalled).toMatchObject([{ uses: 3 }]);
      await use(one, { name: "b" });
      await use(other, { name: "b" });
      await use(one, { name: "c" });
      await world.pass(LINGER + 300);
      const { kept: left, recalled: times, recalledUnused, lapsed } = one.client.stats();
      expect([left, times, recalledUnused, lapsed]).toEqual([0, 2, 1, 1]);
      // A new hold has it, and no caller enters the former one.
      const { result: lease, took } = await world.timed(one.take("lock", { name: "c" }));
      expect(took).toBeGreaterThan(0);
      await lease.unlock();
    }),
  );

  test(
    "comes after `linger`, also when its key was lost, and the next caller has taken it anew",
    scene(async (world) => {
      const [one] = await kept(world);
      await world.pass(3 * FRESH);
      world.redis.drop("lock:a");
      await use(one);
      expect(cachedBy(world, one)).toEqual([1, [one.number]]);
      await world.pass(LINGER + 300);
      expect(cachedBy(world, one)).toEqual([0, []]);
    }),
  );

  test(
    "soon after its last use: the next caller asks Redis",
    scene(async (world) => {
      const [one] = world.processes(1, { linger: 10 });
      const [other] = world.processes(1);
      await warm(world, one, other);
      await use(one);
      for (let i = 0; i < 45; i++) {
        await world.pass(5);
        await use(one);
      }
      await world.until(() => world.redis.holders("lock:a").length === 0);
      const { result: lease, took } = await world.timed(one.take("lock"));
      expect([took > 0, world.redis.holders("lock:a")]).toEqual([true, [one.number]]);
      await lease.unlock();
    }),
  );

  test(
    "by close() finds no key: `lost` has the first token for which Redis has not confirmed it",
    scene(async (world) => {
      const [one] = await kept(world);
      const lost = one.heard("lost");
      const first = await one.take("lock");
      await first.unlock();
      await one.on("renew").answered();
      const last = await one.take("lock");
      await last.unlock();
      world.redis.drop("lock:a");
      await one.does(() => one.client.close());
      expect(lost).toMatchObject([{ token: last.token, firstToken: first.token }]);
    }),
  );

  test(
    "a listener of `recall` blocks the event loop: another process has it all the same",
    scene(async (world) => {
      const [one, other] = await kept(world);
      one.client.on("recall", () => one.block(500));
      await (await comesSoon(world, other.take("lock"))).unlock();
      await world.pass(500);
    }),
  );

  test(
    "isLocked() of another process says that no caller is inside, and the lock stays cached",
    scene(async (world) => {
      const [one, other] = await kept(world);
      expect(await other.does(() => other.client.lock("lock:a").isLocked())).toBe(false);
      await world.pass(10);
      expect(world.redis.holders("lock:a")).toEqual([one.number]);
    }),
  );

  test(
    "Redis refuses its release: it is free when Redis refuses that no more",
    scene(async (world) => {
      const [one] = await kept(world);
      world.redis.refuse("LOADING");
      await one.on("release-stays").refused();
      await world.pass(50);
      world.redis.refuse(null);
      await world.pass(1_000);
      expect(world.redis.holders("lock:a")).toEqual([]);
    }),
  );

  test(
    "Redis refuses its renewal: it is released, because another process may wait",
    scene(async (world) => {
      const [one, other] = await kept(world);
      const renewed = one.on("renew").refused();
      await use(one);
      world.redis.refuse("MISCONF");
      await renewed;
      world.redis.refuse(null);
      await world.pass(10);
      expect(one.client.stats()).toMatchObject({ kept: 0, recalled: 0 });
      await use(other);
    }),
  );

  test(
    "Redis refuses its renewal while a body is inside: the body keeps it",
    scene(async (world) => {
      const [one] = await kept(world);
      const inside = await one.take("lock");
      const renewed = one.on("renew").refused();
      world.redis.refuse("MISCONF");
      await renewed;
      world.redis.refuse(null);
      await world.pass(10);
      expect([inside.held, world.redis.holders("lock:a")]).toEqual([true, [one.number]]);
      await inside.unlock();
    }),
  );

  test(
    "Redis cannot say whether another process waits: it is released",
    scene(async (world) => {
      const [one] = await kept(world);
      await use(one);
      const renewed = one.on("renew").refused();
      world.redis.refuse("TRYAGAIN");
      await renewed;
      await world.pass(10);
      world.redis.refuse(null);
      await world.pass(50);
      expect(cachedBy(world, one)).toEqual([0, []]);
    }),
  );

  test(
    "its key was lost: `lost` has the first token for which Redis has not confirmed it",
    scene(async (world) => {
      const [one] = await kept(world);
      const lost = one.heard("lost");
      const first = await one.take("lock");
      await first.unlock();
      await one.on("renew").answered();
      world.redis.drop("lock:a");
      const second = await one.take("lock");
      await second.unlock();
      const third = await one.take("lock");
      await third.unlock();
      await world.until(() => lost.length > 0);
      expect(lost).toMatchObject([{ token: third.token, firstToken: first.token }]);
    }),
  );

  test(
    "its key was lost, and a caller with `linger: 0` finds that: `lost` has the first token, too",
    scene(async (world) => {
      const [one] = await kept(world);
      const lost = one.heard("lost");
      const first = await one.take("lock");
      await first.unlock();
      await world.pass(3 * FRESH);
      // After a renewal, which confirms the lock for the first one.
      await use(one);
      const last = await one.take("lock");
      await last.unlock();
      world.redis.drop("lock:a");
      const next = await one.does(() => one.client.lock("lock:a", { linger: 0 }).lock());
      expect(lost).toMatchObject([{ token: last.token, firstToken: first.token }]);
      expect(world.redis.holders("lock:a")).toEqual([one.number]);
      await one.does(() => next.unlock());
    }),
  );

  test(
    "a listener of its loss calls tryLock(): it has a new hold",
    scene(async (world) => {
      const [one] = await kept(world);
      const calls: Promise<boolean>[] = [];
      one.client.on("lost", () => {
        const call = async (): Promise<boolean> => {
          const lease = await one.client.lock("lock:a").tryLock();
          await one.sleep(10);
          const isHeld = lease?.held === true && world.redis.holders("lock:a").length === 1;
          await lease?.unlock();
          return isHeld;
        };
        calls.push(call());
      });
      // The next renewal finds that its key is gone.
      await use(one);
      world.redis.drop("lock:a");
      await world.until(() => calls.length > 0);
      expect(await calls[0]).toBe(true);
    }),
  );

  test(
    "close(): it is free at once",
    scene(async (world) => {
      const [one, other] = await kept(world);
      expect((await world.timed(one.does(() => one.client.close()))).took).toBeLessThan(BY_MESSAGE);
      await use(other);
    }),
  );

  test(
    "an exit handler of the application unlocks it: it is free at once",
    scene(async (world) => {
      const [one, other] = await three(world);
      const lease = await one.does(() => one.client.lock("lock:a").lock());
      const { process } = one.member;
      await one.does(() => {
        process.exit();
        // Its own handler comes after those of the package.
        process.isDead = false;
        void lease.unlock();
        one.crash();
      });
      await world.pass(1);
      const { result: next, took } = await world.timed(other.take("lock"));
      expect(took).toBeLessThan(BY_MESSAGE);
      await next.unlock();
    }),
  );

  test(
    "process.exit(): it is free at once",
    scene(async (world) => {
      const [one, other] = await kept(world);
      await world.pass(LINGER / 2);
      await one.does(() => one.exit());
      await world.pass(1);
      const { result: next, took } = await world.timed(other.take("lock"));
      expect(took).toBeLessThan(BY_MESSAGE);
      await next.unlock();
    }),
  );
});

test(
  "a process that caches no locks has renewed one that is in use: another one's tryLock() takes one round trip",
  scene(async (world) => {
    const [, one, other] = await three(world);
    const held = await one.take("lock");
    const next = one.take("lock");
    await held.unlock();
    const lease = await next;
    await one.on("renew").answered();
    const { result, took } = await world.timed(other.tryTake("lock"));
    expect([result, took < 0.5]).toEqual([null, true]);
    await lease.unlock();
  }),
);

test(
  "a caller has a lock after a renewal for it: the lock is asked for S only",
  scene(async (world) => {
    const [, one] = await three(world);
    const held = await one.take("lock", { lease: 1_000 });
    const waiting = one.take("lock");
    await world.pass(3 * FRESH);
    await held.unlock();
    const lease = await waiting;
    expect(world.redis.left("lock:a")).toBeLessThanOrEqual(S);
    await lease.unlock();
  }),
);
