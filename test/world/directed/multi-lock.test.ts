import { describe, expect, test } from "vitest";
import type { MultiLease } from "../../../src/index.ts";
import type { Call } from "../../../src/redis/call.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, L, outcomeOf, R, warm } from "./steps.ts";

// docs/guarantees.md, "multiLock".

const NAMES = ["lock:a", "lock:b", "lock:c"];

const all = (one: SceneProcess, options = {}, names = NAMES): Promise<MultiLease> =>
  one.takeAll(names, options);
const holders = ({ redis }: Scene): number[][] => NAMES.map((name) => redis.holders(name));
const NONE = [[], [], []];

describe("multiLock", () => {
  test(
    "no deadlocks: overlapping multi-locks of several processes, in any order of names",
    scene(async (world) => {
      const processes = world.processes(4);
      const orders = [NAMES, NAMES.toReversed(), ["lock:b", "lock:c", "lock:a"], ["lock:c", "lock:a"]];
      let count = 0;
      await Promise.all(
        processes.map(async (one, i) => {
          for (let turn = 0; turn < 10; turn++) {
            const lease = await all(one, {}, orders[i]);
            await world.pass(2);
            count++;
            await lease.unlock();
          }
        }),
      );
      expect(count).toBe(40);
    }),
  );

  test(
    "all or none: a failed acquisition releases the locks that it took",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const held = await other.take("lock", { name: "b" });
      expect(await one.tryTakeAll(NAMES)).toBeNull();
      expect(await outcomeOf(all(one, { wait: 200 }))).toEqual(["LOCK_TIMEOUT", undefined]);
      await world.pass(5);
      expect(holders(world)).toEqual([[], [other.number], []]);
      await held.unlock();
    }),
  );

  test(
    "a member after a busy one is never taken",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const held = await other.take("lock", { name: "b" });
      const waiting = all(one);
      // Not even for a moment.
      for (let i = 0; i < 100; i++) {
        await world.pass(0.05);
        expect(world.redis.holders("lock:c")).toEqual([]);
      }
      await world.pass(5_000);
      expect(holders(world)).toEqual([[one.number], [other.number], []]);
      await held.unlock();
      const { result: lease, took } = await world.timed(waiting);
      expect(took).toBeLessThan(2 * BY_MESSAGE);
      await lease.unlock();
    }),
  );

  test(
    "of several tryLock() for the same locks one gets all, if no other caller holds them",
    scene(async (world) => {
      const processes = world.processes(5);
      const got = await Promise.all(processes.map((one) => one.tryTakeAll(NAMES)));
      const leases = got.filter((lease) => lease !== null);
      expect(leases).toHaveLength(1);
      for (const lease of leases) await lease.unlock();
    }),
  );

  test(
    "its process crashes while it waits for a member: the members before it are blocked as by a crashed holder",
    scene(async (world) => {
      const [one, other, third] = world.processes(3);
      const held = await other.take("lock", { name: "b" });
      void all(one).catch(() => {});
      await world.pass(1_000);
      one.crash();
      const rest = world.redis.left("lock:a");
      const { result: next, took } = await world.timed(third.take("lock"));
      expect(took).toBeGreaterThanOrEqual(rest - 1);
      expect(took).toBeLessThanOrEqual(rest + R);
      await next.unlock();
      await held.unlock();
    }),
  );

  test(
    "its process crashes during a tryLock() without success: the locks before the busy one stay held for the lease",
    scene(async (world) => {
      const [one, other, third] = world.processes(3);
      const held = await other.take("lock", { name: "b" });
      const executed = one.on("acquire").executed(() => one.crash());
      void one.tryTakeAll(NAMES, { lease: 500 }).catch(() => {});
      await executed;
      expect(holders(world)).toEqual([[one.number], [other.number], []]);
      expect(await third.tryTake("lock")).toBeNull();
      const { took } = await world.timed(third.take("lock").then((next) => next.unlock()));
      expect(took).toBeGreaterThan(490);
      expect(took).toBeLessThanOrEqual(500 + R);
      await held.unlock();
    }),
  );

  test.each([
    ["3 s, because the lease is shorter", 500, 3_000],
    ["the lease", 10_000, 10_000],
  ])("the same with locks that are taken one after the other: for %s", (_, lease, most) =>
    scene(async (world) => {
      const [one, other, third] = world.processes(3);
      const held = await other.take("redissonLock", { name: "b" });
      const executed = one.on("acquire").executed(() => one.crash());
      const { redissonLock } = one.member.process.product;
      void one.does(() =>
        one.client
          .multiLock(["redisson:a", "redisson:b"].map((name) => redissonLock(one.client, name)))
          .tryLock({ lease }),
      );
      await executed;
      expect(await third.tryTake("redissonLock")).toBeNull();
      const { took } = await world.timed(third.take("redissonLock").then((next) => next.unlock()));
      expect(took).toBeGreaterThan(most - 10);
      expect(took).toBeLessThanOrEqual(most + R);
      await held.unlock();
    })(),
  );

  test(
    "one member's key is deleted: its signal aborts at the next renewal, and the others are released by unlock()",
    scene(async (world) => {
      const [one] = world.processes(1);
      const lease = await all(one);
      world.redis.drop("lock:b");
      await world.pass(L / 3);
      expect(lease.signal.reason).toMatchObject({ reason: "gone", lockName: "lock:b" });
      await lease.unlock().catch(() => {});
      await world.pass(1);
      expect(holders(world)).toEqual([[], [], []]);
    }),
  );

  test(
    "the replies to its acquires are lost, and they come again: held once, by one lease",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      await (await all(one)).unlock();
      one.commands.freezeReplies(60_000);
      const waiting = all(one, { lease: 5_000 });
      // Redis has run all of them.
      await world.until(() => holders(world).every(({ length }) => length === 1));
      const first = NAMES.map((name) => world.redis.holds(name));
      one.commands.cut({ back: 1_000 });
      const lease = await waiting;
      expect(NAMES.map((name) => world.redis.holds(name))).toEqual(first);
      for (const name of NAMES) expect(world.redis.left(name)).toBeGreaterThan(4_900);
      expect(await other.tryTake("lock")).toBeNull();
      await lease.unlock();
    }),
  );

  test(
    "the reply to an acquire is lost, and the command fails: LOCK_UNAVAILABLE, and nothing stays",
    scene(async (world) => {
      const [one] = world.processes(1);
      one.losesCommands("fail");
      const cut = one.on("acquire").executed(() => one.commands.cut());
      const call = outcomeOf(all(one));
      await cut;
      expect((await call)?.[0]).toBe("LOCK_UNAVAILABLE");
      await world.pass(1_000);
      expect(holders(world)).toEqual([[], [], []]);
    }),
  );

  test(
    "the reply to a release is lost, and it comes again: no loss, also if another caller has one by then",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const lease = await all(one);
      const waiting = other.take("lock", { name: "b" });
      await world.pass(100);
      const ofB = ({ script, keys }: Call): boolean =>
        script.name.endsWith("/release") && keys.full[0] === "holdfast:{lock:b}";
      const cut = one.on(ofB).executed(() => one.commands.cut());
      const unlocking = lease.unlock();
      await cut;
      const again = one.on(ofB).executed();
      await unlocking;
      await again;
      const next = await waiting;
      expect(next.held).toBe(true);
      await next.unlock();
    }),
  );

  test(
    "the reply to a release is lost, and the command fails: unlock() rejects for each, and all are released",
    scene(async (world) => {
      const [one] = world.processes(1);
      one.losesCommands("fail");
      const lease = await all(one);
      const cut = one.on("release").executed(() => one.commands.cut());
      const unlocking = lease.unlock().catch((error: unknown) => error);
      await cut;
      const { errors } = (await unlocking) as AggregateError;
      expect(errors).toMatchObject(NAMES.map((lockName) => ({ code: "LOCK_UNAVAILABLE", lockName })));
      await world.pass(1_000);
      expect(holders(world)).toEqual([[], [], []]);
    }),
  );
});

describe("a lease of several locks", () => {
  test(
    "one member is force-released, and its client receives messages: the signal aborts at once, the others are released",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      await warm(world, one, other);
      const lease = await all(one);
      const { signal } = lease;
      await other.does(() => other.client.lock("lock:c").forceUnlock());
      await world.pass(BY_MESSAGE);
      expect([lease.held, lease.remaining]).toEqual([false, 0]);
      expect(signal.reason).toMatchObject({ reason: "revoked", lockName: "lock:c" });
      expect(await outcomeOf(lease.unlock())).toEqual(["LOCK_LOST", "revoked"]);
      await lease.unlock(); // it was told once
      expect(holders(world)).toEqual(NONE);
    }),
  );

  test(
    "two members are lost: unlock() rejects with both losses, in their order",
    scene(async (world) => {
      const [one] = world.processes(1);
      const lease = await all(one);
      for (const name of ["lock:a", "lock:c"]) world.redis.drop(name);
      const error = await lease.unlock().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(AggregateError);
      expect((error as AggregateError).errors).toMatchObject(
        ["lock:a", "lock:c"].map((lockName) => ({ code: "LOCK_LOST", reason: "gone", lockName })),
      );
      expect(holders(world)).toEqual(NONE);
    }),
  );

  test(
    "two members are lost: extend() rejects with both losses, in their order, and unlock() releases the third",
    scene(async (world) => {
      const [one] = world.processes(1);
      const lease = await all(one);
      for (const name of ["lock:a", "lock:c"]) world.redis.drop(name);
      const error = await one.does(() => lease.extend(60_000)).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(AggregateError);
      expect((error as AggregateError).errors).toMatchObject(
        ["lock:a", "lock:c"].map((lockName) => ({ code: "LOCK_LOST", reason: "gone", lockName })),
      );
      expect([lease.held, world.redis.holders("lock:b")]).toEqual([false, [one.number]]);
      await lease.unlock().catch(() => {});
      expect(holders(world)).toEqual(NONE);
    }),
  );

  test(
    "the queue of one member has another type: unlock() rejects for it, releases the others, and tries it again",
    scene(async (world) => {
      const [one] = world.processes(1);
      const lease = await all(one);
      const queue = "holdfast:{lock:b}:queue";
      world.redis.overwriteByHash(queue);
      world.shows(/holdfast:\{lock:b\}:queue has no end/);
      const error = await lease.unlock().catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE", lockName: "lock:b" });
      expect(String(error)).toContain("WRONGTYPE");
      expect(holders(world)).toEqual([[], [one.number], []]);
      await world.pass(200);
      world.redis.dropKey(queue);
      await world.pass(3_000);
      expect(holders(world)).toEqual(NONE);
    }),
  );

  test(
    "each member is renewed, and each has its events",
    scene(async (world) => {
      const [one] = world.processes(1);
      const told: string[] = [];
      for (const event of ["acquire", "renew", "release"] as const)
        one.client.on(event, ({ name }: { name: string }) => told.push(`${event} ${name}`));
      const lease = await all(one);
      await world.pass((2 * L) / 3);
      await lease.unlock();
      const expected = (event: string, count: number): string[] =>
        NAMES.flatMap((name) => Array<string>(count).fill(`${event} ${name}`));
      expect(told.sort()).toEqual([
        ...expected("acquire", 1),
        ...expected("release", 1),
        ...expected("renew", 2),
      ]);
    }),
  );

  test(
    "is unlocked: waiters for its members, also in its own process, have them by message",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      await warm(world, one, other);
      await warm(world, other, one);
      const lease = await all(one);
      const waiting = [
        one.take("lock", { name: "a" }),
        other.take("lock", { name: "b" }),
        other.take("lock", { name: "c" }),
      ];
      await world.pass(100);
      await one.does(() => lease.unlock());
      const { result: next, took } = await world.timed(Promise.all(waiting));
      expect(took).toBeLessThan(BY_MESSAGE);
      for (const held of next) await held.unlock();
    }),
  );

  test(
    "its client closes: waiting calls are refused, one lease may end in the grace, and the other one ends with it",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const errors = one.heard("error");
      const held = await other.take("lock", { name: "b" });
      const [finishing, staying] = [await all(one, {}, ["lock:d"]), await all(one, {}, ["lock:e", "lock:f"])];
      const waiting = outcomeOf(all(one));
      await world.pass(100);
      const closing = one.does(() => one.client.close({ grace: 1_000 }));
      expect(await waiting).toEqual(["CLIENT_CLOSED", undefined]);
      expect(await outcomeOf(one.tryTakeAll(NAMES))).toEqual(["CLIENT_CLOSED", undefined]);
      await finishing.unlock();
      expect(staying.held).toBe(true);
      await closing;
      expect([staying.held, staying.signal.reason]).toMatchObject([false, { reason: "closed" }]);
      expect(errors).toMatchObject([{ code: "LOCK_LEFT_BEHIND" }]);
      expect(await staying.unlock().catch((thrown: unknown) => thrown)).toBeInstanceOf(AggregateError);
      await held.unlock();
      const names = [...NAMES, "lock:d", "lock:e", "lock:f"];
      expect(names.flatMap((name) => world.redis.holders(name))).toEqual([]);
    }),
  );
});

describe("an acquisition that fails", () => {
  test(
    "has released what it took before it says so",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const held = await other.take("lock", { name: "c" });
      world.delay(20);
      for (const wait of [0, 60]) {
        expect(await one.does(() => one.client.multiLock(NAMES).tryLock(wait))).toBeNull();
        expect(holders(world)).toEqual([[], [], [other.number]]);
      }
      world.delay(0.2);
      await held.unlock();
    }),
  );

  test(
    "got some of them: it tries once more, because the call in its way may have failed, too",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const held = await other.take("lock", { name: "b" });
      const released = one.on("release").sent(() => one.commands.freeze(20));
      const trying = one.tryTakeAll(["lock:a", "lock:b"]);
      await released;
      await held.unlock();
      const lease = await trying;
      expect(lease?.held).toBe(true);
      await lease?.unlock();
    }),
  );

  test(
    "comes again and again: a member after a busy one is free for others all the time",
    scene(async (world) => {
      const [one, two, other, third] = world.processes(4);
      const held = await other.take("lock", { name: "a" });
      let isOver = false;
      const trying = [one, two].map(async (process) => {
        while (!isOver) expect(await process.tryTakeAll(["lock:a", "lock:b"])).toBeNull();
      });
      for (let i = 0; i < 40; i++) {
        const lease = await third.tryTake("lock", { name: "b" });
        expect(lease).not.toBeNull();
        await lease?.unlock();
      }
      isOver = true;
      await Promise.all(trying);
      await held.unlock();
    }),
  );

  test(
    "its client closes between the tries and their answers: nothing stays",
    scene(async (world) => {
      const [one] = world.processes(1);
      const call = outcomeOf(all(one));
      const closing = one.does(() => one.client.close());
      expect(await call).toEqual(["CLIENT_CLOSED", undefined]);
      await closing;
      expect(holders(world)).toEqual(NONE);
    }),
  );

  test(
    "does not take a free member that another caller waits for: that one has it",
    scene(async (world) => {
      const [one, other, third] = world.processes(3);
      const lost = await third.take("lock", { name: "b" });
      const waiting = other.take("lock", { name: "b" });
      await world.pass(100);
      // Free, and waited for, as at the end of a lease.
      world.redis.drop("lock:b");
      world.shows(/two holders of lock:b/);
      expect(await one.tryTakeAll(NAMES)).toBeNull();
      const { result: next, took } = await world.timed(waiting);
      expect(took).toBeLessThan(BY_MESSAGE);
      expect(holders(world)).toEqual([[], [other.number], []]);
      await next.unlock();
      await lost.unlock().catch(() => {});
    }),
  );
});

describe("callers of one process share a member", () => {
  test(
    "whose try a failed call gives up: they ask for it anew",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const held = await other.take("lock", { name: "a" });
      const trying = one.tryTakeAll(["lock:a", "lock:b"]);
      const sharing = [one.tryTake("lock", { name: "b" }), one.take("lock", { name: "b" })] as const;
      expect(await trying).toBeNull();
      const first = await sharing[0];
      expect(first?.held).toBe(true);
      await first?.unlock();
      await (await sharing[1]).unlock();
      await held.unlock();
    }),
  );

  test(
    "that one of them asks for: a tryLock() of several takes no later one",
    scene(async (world) => {
      const [one] = world.processes(1);
      await (await all(one)).unlock();
      const single = one.take("lock");
      const trying = one.tryTakeAll(["lock:a", "lock:b"]);
      for (let i = 0; i < 20; i++) {
        await world.pass(0.05);
        expect(world.redis.holders("lock:b")).toEqual([]);
      }
      expect(await trying).toBeNull();
      await (await single).unlock();
    }),
  );

  test(
    "that one of them asks for: lock() of several has all after it",
    scene(async (world) => {
      const [one] = world.processes(1);
      const single = one.take("lock");
      const waiting = all(one, {}, ["lock:a", "lock:b"]);
      await (await single).unlock();
      const lease = await waiting;
      expect(lease.held).toBe(true);
      await lease.unlock();
    }),
  );

  test(
    "that is busy: they wait in one queue, with the members before it and none after it",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const held = await other.take("lock", { name: "b" });
      const calls = [NAMES, ["lock:b", "lock:c"], NAMES].map((names) => all(one, {}, names));
      await world.pass(100);
      expect(holders(world)).toEqual([[one.number], [other.number], []]);
      expect([world.redis.queue("lock:b"), world.redis.queue("lock:c")]).toEqual([[one.number], []]);
      await held.unlock();
      await Promise.all(calls.map(async (call) => (await call).unlock()));
    }),
  );
});
