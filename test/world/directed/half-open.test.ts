import { describe, expect, test } from "vitest";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, inTurn, L, outcomeOf, parked, R, W, warm } from "./steps.ts";

// Connections that stay open while nothing passes.

const LONG = 3_600_000;

/** A process whose SUBSCRIBE is never answered, and another one. */
function deaf({ processes }: Scene): [SceneProcess, SceneProcess] {
  const [one, other] = processes(2);
  one.withoutMessages(LONG);
  one.heard("error");
  return [one, other];
}

describe("a call on a half-open connection", () => {
  test(
    "fails in the time of a first command, and its command has no effect when it arrives",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      await (await one.take("lock")).unlock();
      one.commands.freeze(8_000);
      const { result, took } = await world.timed(outcomeOf(one.tryTake("lock")));
      expect(result).toEqual(["LOCK_UNAVAILABLE", undefined]);
      expect(took).toBeGreaterThan(490);
      expect(took).toBeLessThan(600);
      await world.pass(8_000);
      expect(world.redis.keys("lock:a")).toEqual([]);
      await (await other.take("lock")).unlock();
    }),
  );

  test(
    "for less than the lease: nothing is lost",
    scene(async (world) => {
      const [one] = world.processes(1);
      const held = await one.take("lock");
      await one.on("renew").sent(() => one.commands.freeze(L / 2));
      const { took } = await world.timed(one.on("renew").executed());
      expect(took).toBeGreaterThan(L / 2 - 1);
      await world.pass(L);
      expect([held.held, held.lease.signal.aborted]).toEqual([true, false]);
      await held.unlock();
    }),
  );

  test(
    "unlock() rejects after replyTimeout; its late release harms no later holder",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const { held, waiting } = await parked(world, one, [other]);
      one.commands.freeze(L + 10_000);
      const { result, took } = await world.timed(outcomeOf(held.unlock()));
      expect(result).toEqual(["LOCK_UNAVAILABLE", undefined]);
      expect(took).toBeLessThan(5_100);
      const next = await waiting[0];
      await one.on("release").executed();
      await world.pass(1);
      expect([next.held, world.redis.holders("lock:a")]).toEqual([true, [other.number]]);
      await next.unlock();
    }),
  );
});

describe("a half-open subscriber", () => {
  test(
    "gets its turns, and costs the others at most W and a re-check",
    scene(async (world) => {
      const [one, other, last] = world.processes(3);
      await warm(world, one, other);
      await warm(world, other, one);
      const waits: Record<"deaf" | "other", number[]> = { deaf: [], other: [] };
      const play = async (what: keyof typeof waits, process: SceneProcess): Promise<void> => {
        for (let turn = 0; turn < 3; turn++) {
          // A connection that takes its place is as slow.
          if (what === "deaf") one.withoutMessages(W + 500);
          const { result, took } = await world.timed(process.take("lock"));
          waits[what].push(took);
          await world.pass(10);
          await result.unlock();
        }
      };
      const held = await last.take("lock");
      const games = [play("deaf", one), play("other", other)];
      await world.pass(50);
      await held.unlock();
      await Promise.all(games);
      expect(Math.max(...waits.deaf, ...waits.other)).toBeLessThanOrEqual(W + 2 * R);
    }),
  );

  test.each(["lock", "fairLock"] as const)(
    "whose SUBSCRIBE is never answered gets its turns, also after twelve others: %s",
    (kind) =>
      scene(async (world) => {
        const [one] = deaf(world);
        const rivals = world.processes(12);
        let isOver = false;
        const games = rivals.map(async (rival) => {
          while (!isOver) {
            const lease = await rival.take(kind);
            await world.pass(10);
            await lease.unlock();
          }
        });
        await world.pass(100);
        const waits: number[] = [];
        for (let turn = 0; turn < 3; turn++) {
          const { result, took } = await world.timed(one.take(kind));
          waits.push(took);
          await result.unlock();
        }
        isOver = true;
        await Promise.all(games);
        // The first turn waits for SUBSCRIBE in vain.
        expect(waits[0]).toBeLessThan(5_000 + W);
        expect(Math.max(...waits.slice(1))).toBeLessThan(W);
      })(),
  );

  test(
    "whose SUBSCRIBE is never answered re-checks as often as the first one, at any place in the queue",
    scene(async (world) => {
      const [one, other] = deaf(world);
      const held = await other.take("fairLock of a shared name");
      const before = Array.from({ length: 110 }, async () =>
        (await other.take("fairLock of a shared name")).unlock(),
      );
      await world.pass(100);
      const waiting = one.take("lock of a shared name");
      await one.on("recheck").answered();
      await world.pass(10_000);
      await held.unlock();
      const { result, took } = await world.timed(waiting);
      expect(took).toBeLessThanOrEqual(R + 200);
      await result.unlock();
      await Promise.all(before);
    }),
  );

  test(
    "whose SUBSCRIBE is answered late receives its grant by message",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      one.withoutMessages(8_000);
      const { held, waiting } = { held: await other.take("lock"), waiting: one.take("lock") };
      await world.pass(12_000);
      await held.unlock();
      await inTurn(world, waiting);
    }),
  );

  test(
    "that stops accepting SUBSCRIBE is replaced",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const held = await other.take("lock");
      const waiting = one.take("lock");
      await one.on("acquire").answered();
      // This one connection only.
      one.messages.freeze(LONG);
      await world.pass(20_000);
      await held.unlock();
      await inTurn(world, waiting);
    }),
  );

  test(
    "finds its grant, however short its lease",
    scene(async (world) => {
      const [one, other] = deaf(world);
      const held = await other.take("lock");
      // Below the grant window, and below a re-check.
      const waiting = one.take("lock", { lease: 1_000 });
      await world.pass(6_000);
      await held.unlock();
      const granted = world.redis.holds("lock:a");
      const lease = await waiting;
      expect(world.redis.holds("lock:a")).toEqual(granted);
      await lease.unlock();
    }),
  );

  test.each(["lock", "redissonLock"] as const)(
    "makes a caller that comes while SUBSCRIBE is unanswered, and would not wait, try: %s",
    (kind) =>
      scene(async (world) => {
        const [one, other] = deaf(world);
        const held = await other.take(kind);
        const waiting = one.take(kind);
        await world.pass(900);
        await held.unlock();
        // The first caller has it.
        expect(await one.tryTake(kind)).toBeNull();
        const lease = await waiting;
        expect(await other.tryTake(kind)).toBeNull();
        await lease.unlock();
      })(),
  );

  test.each(["lock", "redissonLock"] as const)(
    "whose SUBSCRIBE is unanswered: a lock that is released meanwhile is tried after 100, 200, 400 … ms: %s",
    (kind) =>
      scene(async (world) => {
        const [one, other] = deaf(world);
        const held = await other.take(kind);
        const waiting = one.take(kind);
        await world.pass(250);
        await held.unlock();
        const { result, took } = await world.timed(waiting);
        expect(took).toBeLessThan(200);
        await result.unlock();
      })(),
  );

  test(
    "whose SUBSCRIBE is unanswered: waiters of redissonLock try nine times in 5 s, and then as TTLs end",
    scene(async (world) => {
      const [one, other] = deaf(world);
      const held = await other.take("redissonLock");
      const waiting = one.take("redissonLock");
      const before = one.sent;
      // At 0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2 s, and when SUBSCRIBE is given up. If that counted for
      // every try that had waited for it, tries would breed tries.
      await world.pass(4_900);
      expect(one.sent - before).toBeLessThanOrEqual(8);
      await world.pass(1_100);
      expect(one.sent - before).toBeLessThanOrEqual(10);
      await held.unlock();
      const { result, took } = await world.timed(waiting);
      expect(took).toBeLessThan(L);
      await result.unlock();
    }),
  );

  test(
    "that ended while no caller waited is opened again by the next waiter",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const held = await other.take("lock");
      one.withoutMessages(10_000);
      expect(await outcomeOf(one.take("lock", { wait: 1_000 }))).toEqual(["LOCK_TIMEOUT", undefined]);
      await world.pass(15_000);
      const waiting = one.take("lock");
      await world.pass(100);
      await held.unlock();
      const { result, took } = await world.timed(waiting);
      expect(took).toBeLessThan(BY_MESSAGE);
      await result.unlock();
    }),
  );

  test(
    "a grant is read after a re-check has found it: it changes nothing",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const { held, waiting } = await parked(world, other, [one]);
      one.messages.freezeReplies(R + 100);
      await held.unlock();
      const read = one.onMessage("grant");
      const lease = await waiting[0];
      const holds = world.redis.holds("lock:a");
      await read;
      await world.pass(100);
      expect([lease.held, world.redis.holds("lock:a")]).toEqual([true, holds]);
      await lease.unlock();
    }),
  );

  test(
    "20 waiters lose their connections for messages at once: each gets its turn",
    scene(async (world) => {
      const [holder, ...waiters] = world.processes(21);
      const held = await holder.take("lock");
      const turns = waiters.map(async (one) => (await one.take("lock")).unlock());
      await world.pass(100);
      for (const one of waiters) one.messages.cut();
      const { took } = await world.timed(held.unlock().then(() => Promise.all(turns)));
      expect(took).toBeLessThan(R + 500);
    }),
  );
});
