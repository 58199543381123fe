import { describe, expect, test } from "vitest";
import { scene } from "./scene.ts";
import { L, outcomeOf } from "./steps.ts";

// docs/guarantees.md, "redissonLock", "redissonFencedLock" and "spinLock".

const REDISSON = ["redissonLock", "redissonFencedLock"] as const;
const KEYS = { redissonLock: "redisson:a", redissonFencedLock: "redissonFenced:a" };

describe.each(REDISSON)("%s", (kind) => {
  test(
    "unlock wakes every waiting process; each tries once, and one gets the lock",
    scene(async (world) => {
      const [holder, one, other] = world.processes(3);
      const held = await holder.take(kind);
      const waiting = [one.take(kind), other.take(kind)];
      await world.pass(100);
      const before = [one.sent, other.sent];
      await held.unlock();
      const { result: next, took } = await world.timed(Promise.race(waiting));
      expect(took).toBeLessThan(5);
      await world.pass(50);
      expect([one.sent, other.sent].map((sent, i) => sent - (before[i] ?? 0))).toEqual([1, 1]);
      await next.unlock();
      await (await Promise.all(waiting)).find((lease) => lease !== next)?.unlock();
    }),
  );

  test(
    "the holder crashes: waiters try when the TTL that they received is over",
    scene(async (world) => {
      const [holder, one] = world.processes(2);
      await holder.take(kind);
      const waiting = one.take(kind);
      await world.pass(100);
      holder.crash();
      const { result: next, took } = await world.timed(waiting);
      expect(took).toBeGreaterThan(L - 200);
      expect(took).toBeLessThanOrEqual(L);
      await next.unlock();
    }),
  );

  test(
    "the message of an unlock is lost: waiters try when the TTL that they received is over",
    scene(async (world) => {
      const [holder, one] = world.processes(2);
      const held = await holder.take(kind);
      const waiting = one.take(kind);
      await world.pass(100);
      one.messages.freezeReplies(2 * L);
      await held.unlock();
      const { result: next, took } = await world.timed(waiting);
      expect(took).toBeLessThanOrEqual(L);
      await next.unlock();
    }),
  );

  test(
    "the key is deleted, and another one has it: the holder finds `taken` at its next renewal",
    scene(async (world) => {
      const [holder, one] = world.processes(2);
      const held = await holder.take(kind);
      world.redis.dropKey(KEYS[kind]);
      world.shows(/two holders/);
      const next = await one.take(kind);
      await world.pass(L / 3);
      expect(held.lease.signal.reason).toMatchObject({ reason: "taken" });
      await held.unlock().catch(() => {});
      await next.unlock();
    }),
  );

  test(
    "forceUnlock(): the holder finds `gone` at its next unlock, and a waiter has the lock at once",
    scene(async (world) => {
      const [holder, one, admin] = world.processes(3);
      const held = await holder.take(kind);
      const { product } = admin.member.process;
      await product[kind](admin.client, KEYS[kind]).forceUnlock();
      expect(await outcomeOf(held.unlock())).toEqual(["LOCK_LOST", "gone"]);
      await (await one.take(kind)).unlock();
    }),
  );

  test(
    "the reply to an acquire is lost, and it comes again: it counts once",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      await (await one.take(kind, { name: "b" })).unlock();
      const cut = one.on("acquire").executed(() => one.commands.cut());
      const taking = one.take(kind);
      await cut;
      await one.on("acquire").executed();
      await (await taking).unlock();
      await (await other.take(kind)).unlock();
    }),
  );

  test(
    "the reply to a release is lost, and it comes again: no loss, also if another caller has it by then",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const held = await one.take(kind);
      const waiting = other.take(kind);
      await world.pass(100);
      const cut = one.on("release").executed(() => one.commands.cut());
      const unlocking = held.unlock();
      await cut;
      const next = await waiting;
      await unlocking;
      expect(next.held).toBe(true);
      await next.unlock();
    }),
  );

  test(
    "the reply to a release is lost, and it comes again to a free lock: no loss",
    scene(async (world) => {
      const [one] = world.processes(1);
      const held = await one.take(kind);
      const cut = one.on("release").executed(() => one.commands.cut());
      const unlocking = held.unlock();
      await cut;
      await one.on("release").executed();
      await unlocking;
      expect(world.redis.hash(KEYS[kind]).size).toBe(0);
    }),
  );
});

describe("redissonFencedLock", () => {
  test(
    "Redis loses the counter: tokens start again at 1",
    scene(async (world) => {
      const [one] = world.processes(1);
      for (let i = 1; i < 4; i++) {
        const lease = await one.take("redissonFencedLock");
        expect(lease.token).toBe(i);
        await lease.unlock();
      }
      world.redis.dropAll();
      const lease = await one.take("redissonFencedLock");
      expect(lease.token).toBe(1);
      await lease.unlock();
    }),
  );
});

describe("spinLock", () => {
  test(
    "unlock notifies no waiter: the first that tries gets the lock, within 128 ms",
    scene(async (world) => {
      const [holder, one, other] = world.processes(3);
      const held = await holder.take("spinLock");
      const waiting = [one.take("spinLock"), other.take("spinLock")];
      await world.pass(3_000);
      await held.unlock();
      const { result: next, took } = await world.timed(Promise.race(waiting));
      expect(took).toBeLessThan(128);
      await next.unlock();
      await (await Promise.all(waiting)).find((lease) => lease !== next)?.unlock();
    }),
  );

  test(
    "the holder crashes: the waiter has the lock after the rest of its lease, and 128 ms",
    scene(async (world) => {
      const [holder, one] = world.processes(2);
      await holder.take("spinLock");
      const waiting = one.take("spinLock");
      await world.pass(100);
      holder.crash();
      const { result: next, took } = await world.timed(waiting);
      expect(took).toBeGreaterThan(L - 200);
      expect(took).toBeLessThan(L + 128);
      await next.unlock();
    }),
  );

  test(
    "the key is deleted: the holder finds `taken` at its next renewal",
    scene(async (world) => {
      const [holder, one] = world.processes(2);
      const held = await holder.take("spinLock");
      world.redis.dropKey("spin:a");
      world.shows(/two holders/);
      const next = await one.take("spinLock");
      await world.pass(L / 3);
      expect(held.lease.signal.reason).toMatchObject({ reason: "taken" });
      await held.unlock().catch(() => {});
      await next.unlock();
    }),
  );

  test(
    "the connection breaks during the unlock, and the command is executed twice: LockLostError, unknown",
    scene(async (world) => {
      const [one] = world.processes(1);
      const held = await one.take("spinLock");
      const cut = one.on("release").executed(() => one.commands.cut());
      const unlocking = outcomeOf(held.unlock());
      await cut;
      expect(await unlocking).toEqual(["LOCK_LOST", "unknown"]);
      expect(world.redis.remaining("spin:a")).toBe(0);
    }),
  );

  test(
    "the reply to an acquire is lost, and it comes again: it does not wait for itself",
    scene(async (world) => {
      const [one] = world.processes(1);
      await (await one.take("spinLock", { name: "b" })).unlock();
      const cut = one.on("acquire").executed(() => one.commands.cut());
      const taking = world.timed(one.take("spinLock"));
      await cut;
      await one.on("acquire").executed();
      const { result: lease, took } = await taking;
      expect(took).toBeLessThan(100);
      await lease.unlock();
    }),
  );

  test(
    "other data under the key is never deleted: waiters wait as for a holder; another type is LOCK_UNAVAILABLE",
    scene(async (world) => {
      const [one] = world.processes(1);
      world.redis.overwrite("spin:a", "other data");
      expect(await outcomeOf(one.take("spinLock", { wait: 5_000 }))).toEqual(["LOCK_TIMEOUT", undefined]);
      expect(world.redis.dropKey("spin:a")).toBe("other data");
      world.redis.overwriteByHash("spin:a");
      const refused: unknown = await one.take("spinLock").catch((error: unknown) => error);
      expect(refused).toMatchObject({
        code: "LOCK_UNAVAILABLE",
        message: expect.stringContaining("WRONGTYPE"),
      });
      expect(world.redis.hash("spin:a").size).toBe(1);
    }),
  );
});
