import { describe, expect, test } from "vitest";
import { scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { inTurn, L, outcomeOf, parked, R, W, warm } from "./steps.ts";

// docs/guarantees.md: which caller is next, with `lock` and `fairLock`, and how a holder notices waiters.

describe("local hand-offs", () => {
  test.each([
    [16, "a lock", {}],
    [48, "one that may be cached", { linger: 1_000 }],
    [4, "one that may be cached and says so", { linger: 1_000, localHandoffs: 4 }],
  ])(
    "after another process has begun to wait, callers of the holder's process get at most %i more, for at most 25 ms: %s",
    (most, _, options) =>
      scene(async (world) => {
        const [holder, other] = world.processes(2, options);
        const held = await holder.take("lock");
        let local = 0;
        let isOver = false;
        const again = async (): Promise<void> => {
          while (!isOver) {
            const lease = await holder.take("lock");
            if (!isOver) local++;
            await lease.unlock();
          }
        };
        const callers = [again(), again(), again()];
        await world.pass(50);
        expect(local).toBe(0);
        const waiting = other.take("lock");
        await world.pass(100);
        await held.unlock();
        const { result, took } = await world.timed(waiting);
        isOver = true;
        expect(took).toBeLessThan(25 + 5);
        expect(local).toBeGreaterThan(most / 2);
        expect(local).toBeLessThanOrEqual(most);
        await result.unlock();
        await Promise.all(callers);
      })(),
  );

  test(
    "unlock() resolves without an answer from Redis; withLock({ confirm: true }) reports a key that is gone",
    scene(async (world) => {
      const [holder] = world.processes(1);
      const held = await holder.take("lock");
      const local = outcomeOf(
        holder.client.lock("lock:a").withLock({ confirm: true }, async () => {
          world.redis.drop("lock:a");
        }),
      );
      const last = holder.take("lock");
      await world.pass(10);
      expect((await world.timed(held.unlock())).took).toBe(0);
      expect(await local).toEqual(["LOCK_LOST", "gone"]);
      await (await last).unlock();
    }),
  );
});

describe("fairLock", () => {
  test(
    "first come, first served over all processes, as Redis received the callers",
    scene(async (world) => {
      const [holder, one, other] = world.processes(3);
      const held = await holder.take("fairLock");
      const order: number[] = [];
      const callers = [one, other, one, one, other, holder, one].map(async (caller, i) => {
        await world.pass(10 * i);
        const lease = await caller.take("fairLock");
        order.push(i);
        await world.pass(5);
        await lease.unlock();
      });
      await world.pass(100);
      await held.unlock();
      await Promise.all(callers);
      expect(order).toEqual([0, 1, 2, 3, 4, 5, 6]);
    }),
  );

  test(
    "a paused process with many waiters costs W for each, until their entries expire after 4.5 s",
    scene(async (world) => {
      const [holder, paused, other] = world.processes(3);
      const held = await holder.take("fairLock");
      const own = Array.from({ length: 6 }, () => paused.take("fairLock"));
      await world.pass(50);
      const waiting = other.take("fairLock");
      await world.pass(50);
      paused.pause(60_000);
      await held.unlock();
      const { result, took } = await world.timed(waiting);
      expect(took).toBeGreaterThan(W);
      expect(took).toBeLessThanOrEqual(4_500 + W + R);
      await result.unlock();
      for (const one of own) await (await one).unlock();
    }),
  );

  test.each([
    ["9 s", "the 9th", 8, 9_000],
    ["30 s", "the 101st", 100, 30_000],
  ])(
    "the entries of a paused process expire %s after their last re-check, if the first of them is %s of the queue",
    (_, __, before, most) =>
      scene(async (world) => {
        for (const left of [most - 500, most + 10]) {
          const [holder, front, paused, other] = world.processes(4);
          const held = await holder.take("fairLock");
          const first = Array.from({ length: before }, () => front.take("fairLock"));
          await world.until(() => world.redis.queue("fair:a").length === before);
          const own = Array.from({ length: 3 }, () => paused.take("fairLock"));
          await world.until(() => world.redis.queue("fair:a").length === before + 3);
          const waiting = other.take("fairLock");
          // By then it knows its place.
          await world.pass(15_000);
          await paused.on("recheck").executed(() => paused.pause(120_000));
          await world.pass(left);
          const { result, took } = await world.timed(
            Promise.all([waiting, held.unlock(), ...first.map(async (one) => (await one).unlock())]),
          );
          if (left > most) expect(took).toBeLessThan(R);
          else expect(took).toBeGreaterThan(W);
          await result[0].unlock();
          for (const one of own) await (await one).unlock();
        }
      })(),
  );

  test(
    "and lock of one name are one lock, and share one queue",
    scene(async (world) => {
      const [holder, fair, plain] = world.processes(3);
      const held = await holder.take("lock of a shared name");
      const first = fair.take("fairLock of a shared name");
      await world.pass(20);
      const second = plain.take("lock of a shared name");
      await world.pass(20);
      await held.unlock();
      await inTurn(world, first, second);
    }),
  );

  test(
    "a client that cannot re-check in time loses its places",
    scene(async (world) => {
      const [holder, away, other] = world.processes(3);
      const { held, waiting } = await parked(world, holder, [away, other], { kind: "fairLock" });
      away.cutOff(8_000);
      await world.pass(7_000);
      await held.unlock();
      await inTurn(world, waiting[1]);
      await (await waiting[0]).unlock();
    }),
  );
});

describe("lease.wanted", () => {
  const aborted = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => signal.addEventListener("abort", () => resolve()));

  /** A process holds the lock, and reads `wanted`. */
  const wants = async (holder: SceneProcess) => {
    const held = await holder.take("lock");
    return { held, signal: held.lease.wanted };
  };

  test(
    "aborts at once when another process waits",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { held, signal } = await wants(holder);
      await world.pass(100);
      const waiting = other.take("lock");
      const { took } = await world.timed(aborted(signal));
      expect(took).toBeLessThan(5);
      expect(held.held).toBe(true);
      await held.unlock();
      await inTurn(world, waiting);
    }),
  );

  test(
    "the message is lost: it aborts at the waiter's next re-check or the next renewal",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { held, signal } = await wants(holder);
      await world.pass(100);
      holder.messages.freezeReplies(1_000);
      const waiting = other.take("lock");
      await other.on("acquire").executed(() => holder.messages.cut({ back: 200 }));
      const { took } = await world.timed(aborted(signal));
      expect(took).toBeLessThan(L / 3);
      await held.unlock();
      await (await waiting).unlock();
    }),
  );

  test(
    "the waiter gives up: it stays aborted, also for the caller that gets the lock by a local hand-off",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { held, signal } = await wants(holder);
      await world.pass(100);
      const local = holder.take("lock");
      await outcomeOf(other.take("lock", { wait: 10 }));
      expect(signal.aborted).toBe(true);
      expect((await world.timed(held.unlock())).took).toBe(0);
      const next = await local;
      expect(next.lease.wanted.aborted).toBe(true);
      await next.unlock();
    }),
  );

  test(
    "never aborts for tryLock() without `wait`, or after the end of the lease",
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      await warm(world, other, holder);
      const { held, signal } = await wants(holder);
      await world.pass(100);
      expect(await other.tryTake("lock")).toBeNull();
      await world.pass(2 * L);
      expect(signal.aborted).toBe(false);
      await held.unlock();
      const next = await other.take("lock");
      const last = holder.take("lock");
      await world.pass(100);
      expect(signal.aborted).toBe(false);
      await next.unlock();
      await (await last).unlock();
    }),
  );
});
