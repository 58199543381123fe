import { describe, expect, test } from "vitest";
import { EPOCH } from "../simulated-process.ts";
import { scene } from "./scene.ts";

// The last token that was given stands in Redis. Where something else has written it, tokens grow all
// the same, or none is given. The scripts on a real server: test/lock/handoff.scripts.test.ts.

const MAX = Number.MAX_SAFE_INTEGER;
const CLOCK = "holdfast:clock";
const failure = (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error);
const refusal = {
  code: "LOCK_UNAVAILABLE",
  message: expect.stringMatching(/holdfast:clock, is at .*2\^53-1.* DEL holdfast:clock,/),
};

// Free locks are taken so fast that more tokens for each would lead the server's time.
test(
  "a free lock that may stay cached reserves 16 tokens, and one that was waited for 32",
  scene(async (world) => {
    const [near, far] = world.processes(2, { linger: 1_000 });
    const reserved = (token: number): number => Number(world.redis.dropKey(CLOCK)) - token;
    const free = await near.take("lock");
    expect(reserved(free.token)).toBe(16);
    const waiting = far.take("lock");
    await world.pass(50);
    await free.unlock();
    const granted = await waiting;
    expect(reserved(granted.token)).toBe(32);
    await granted.unlock();
  }),
);

describe("a clock that is too large", () => {
  test.each([`${MAX}`, "9007199254740993", "1e+300", "inf"])(
    "%s: no token is given, and nothing is held or written",
    (poison) =>
      scene(async (world) => {
        const [near] = world.processes(1);
        world.redis.overwrite(CLOCK, poison);
        for (const take of [
          () => near.tryTake("lock"),
          () => near.take("lock"),
          () => near.take("fairLock"),
          () => near.tryTakeAll(["lock:a", "lock:b"]),
        ])
          expect(await failure(take())).toMatchObject(refusal);
        expect(["lock:a", "lock:b", "fair:a"].flatMap((name) => world.redis.keys(name))).toEqual([]);
        // What the message says.
        expect(world.redis.dropKey(CLOCK)).toBe(poison);
        const lease = await near.take("lock");
        expect(lease.token).toBeLessThan(MAX);
        await lease.unlock();
      })(),
  );

  test(
    "gives the remaining numbers, each of them once",
    scene(async (world) => {
      const [near] = world.processes(1);
      world.redis.overwrite(CLOCK, `${MAX - 3}`);
      const tokens: number[] = [];
      const takeAll = async (): Promise<void> => {
        for (;;) {
          const lease = await near.take("fairLock");
          tokens.push(lease.token);
          await lease.unlock();
        }
      };
      expect(await failure(takeAll())).toMatchObject(refusal);
      expect(tokens).toEqual([MAX - 2, MAX - 1, MAX]);
      world.redis.dropKey(CLOCK);
    }),
  );

  test(
    "several locks get one each, or none is acquired",
    scene(async (world) => {
      const [near] = world.processes(1);
      world.redis.overwrite(CLOCK, `${MAX - 2}`);
      const names = ["lock:a", "lock:b", "lock:c"];
      expect(await failure(near.tryTakeAll(names))).toMatchObject({ code: "LOCK_UNAVAILABLE" });
      await world.pass(5);
      expect(names.flatMap((name) => world.redis.holders(name))).toEqual([]);
      world.redis.dropKey(CLOCK);
    }),
  );

  test.each([
    ["the holder's process has no waiter", false],
    ["the holder's process has a waiter too, so that it yields", true],
  ] as const)("at an unlock: it resolves, and the waiters get their turns after a repair; %s", (_, hasOwn) =>
    scene(async (world) => {
      const [holder] = world.processes(1, { localHandoffs: 0 });
      const [far, near] = world.processes(2);
      const held = await holder.take("lock");
      const turn = async (one: typeof far): Promise<void> => {
        const lease = await one.take("lock");
        expect(lease.token).toBeGreaterThan(held.token);
        await lease.unlock();
      };
      const turns = [turn(far)];
      await world.until(() => world.redis.queue("lock:a").length === 1);
      if (hasOwn) turns.push(turn(holder));
      await world.pass(5);
      world.redis.overwrite(CLOCK, `${MAX}`);
      await held.unlock();
      expect(world.redis.holders("lock:a")).toEqual([]);
      expect(await failure(near.tryTake("lock"))).toMatchObject(refusal);
      world.redis.dropKey(CLOCK);
      await Promise.all(turns);
    })(),
  );
});

test.each(["hello", "", "-5", "nan"])("a clock of '%s' is repaired", (text) =>
  scene(async (world) => {
    const [near] = world.processes(1);
    world.redis.overwrite(CLOCK, text);
    const first = await near.take("lock");
    const second = await near.take("lock", { name: "b" });
    expect(first.token).toBeGreaterThan((EPOCH + world.now() - 60_000) * 1_000);
    expect(second.token).toBeGreaterThan(first.token);
    expect(Number(world.redis.dropKey(CLOCK))).toBeGreaterThanOrEqual(second.token);
    await first.unlock();
    await second.unlock();
  })(),
);
