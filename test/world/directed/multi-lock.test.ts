import { describe, expect, test } from "vitest";
import type { MultiLease } from "../../../src/index.ts";
import type { Call } from "../../../src/redis/call.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, L, outcomeOf, R } from "./steps.ts";

// docs/guarantees.md, "multiLock".

const NAMES = ["lock:a", "lock:b", "lock:c"];

const all = (one: SceneProcess, options = {}, names = NAMES): Promise<MultiLease> =>
  one.takeAll(names, options);
const holders = ({ redis }: Scene): number[][] => NAMES.map((name) => redis.holders(name));

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
