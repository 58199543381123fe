import { describe, expect, test } from "vitest";
import { EPOCH } from "../simulated-process.ts";
import { type Scene, scene } from "./scene.ts";
import { warm } from "./steps.ts";

// The last token that was given stands in Redis. Where something else has written it, tokens grow all
// the same, or none is given. The scripts on a real server: test/lock/handoff.scripts.test.ts.

const MAX = Number.MAX_SAFE_INTEGER;
const CLOCK = "holdfast:clock";
const failure = (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error);
const refusal = {
  code: "LOCK_UNAVAILABLE",
  message: expect.stringMatching(/holdfast:clock, is at .*2\^53-1.* DEL holdfast:clock,/),
};

describe("a lock that may stay cached", () => {
  const HOUR = 3_600_000;
  const micros = (ms: number): number => Math.floor((EPOCH + ms) * 1_000);

  // Locks are taken so fast that the clock would run away from the server's time.
  test.each([
    ["48 tokens", 0, 48],
    ["16 while the clock is ahead of the server's time", HOUR, 16],
  ])(
    "reserves %s: a free one, one that the queue has granted, and one of a crashed holder",
    (_, ahead, most) =>
      scene(async (world) => {
        const [near, far] = world.processes(2, { linger: 1_000 });
        const moveClock = (): void => {
          if (ahead > 0) world.redis.overwrite(CLOCK, `${micros(world.now() + ahead)}`);
        };
        const reserved = (token: number): number => Number(world.redis.dropKey(CLOCK)) - token;
        moveClock();
        const free = await near.take("lock");
        expect(reserved(free.token)).toBe(most);
        const waiting = far.take("lock");
        await world.pass(50);
        moveClock();
        await free.unlock();
        const granted = await waiting;
        expect(reserved(granted.token)).toBe(most);
        const last = near.take("lock");
        await world.pass(50);
        moveClock();
        far.crash();
        const found = await last;
        expect(reserved(found.token)).toBe(most);
        await found.unlock();
      })(),
  );

  /** 61 callers of a process wait for it, and then one of another process. A third one has it. */
  async function queued(world: Scene) {
    const [near, far, third] = world.processes(3, { linger: 1_000 });
    await warm(world, near, third);
    await warm(world, far, third);
    const held = await third.take("lock");
    const tokens: number[] = [];
    let isOver = false;
    const callers = Array.from({ length: 61 }, async () => {
      const lease = await near.take("lock");
      if (!isOver) tokens.push(lease.token);
      await lease.unlock();
    });
    await world.pass(10);
    const waiting = far.take("lock");
    await world.pass(10);
    /** It gives it back: the tokens of the callers before the other process, and that one's. */
    const release = async (): Promise<{ tokens: number[]; next: number }> => {
      await held.unlock();
      const next = await waiting;
      isOver = true;
      await next.unlock();
      await Promise.all(callers);
      world.redis.dropKey(CLOCK);
      return { tokens, next: next.token };
    };
    return { near, release };
  }

  test.each([
    ["48 times", 0, 48],
    ["16 times while the clock is ahead of the server's time", HOUR, 16],
  ])("is handed on locally %s, each time with a token below the next process's", (_, ahead, most) =>
    scene(async (world) => {
      const { release } = await queued(world);
      if (ahead > 0) world.redis.overwrite(CLOCK, `${micros(world.now() + ahead)}`);
      const { tokens, next } = await release();
      expect(tokens).toHaveLength(1 + most);
      expect(Math.max(...tokens)).toBeLessThan(next);
    })(),
  );

  // The time in a later answer may equal the token.
  test("its message is lost, and a re-check finds it at the µs that its token names: 16 times", async () => {
    const play = async (ahead: number): Promise<number> => {
      let found = 0;
      await scene(async (world) => {
        const { near, release } = await queued(world);
        near.messages.freezeReplies(10_000);
        const start = micros(world.now());
        if (ahead > 0) world.redis.overwrite(CLOCK, `${start + ahead - 1}`);
        void near.on("recheck").executed(() => {
          found = micros(world.now()) - start;
        });
        const { tokens, next } = await release();
        expect(Math.max(...tokens)).toBeLessThan(next);
        if (ahead === 0) return;
        expect(tokens[0]).toBe(start + found);
        expect(tokens).toHaveLength(1 + 16);
      })();
      return found;
    };
    const later = await play(0);
    expect(await play(later)).toBe(later);
  });
});

test(
  "with `replicas`, callers here get the reserved tokens only, also after a renewal that finds a waiter",
  scene(async (world) => {
    const both = world.processes(2, { replicas: 1 });
    for (const one of both) one.hasReplicas();
    const [near, far] = both;
    // The next token is one more than the last one.
    await (await near.take("lock")).unlock();
    world.redis.setBack(3_600_000);
    const first = await near.take("lock");
    let most = first.token;
    const callers = Array.from({ length: 40 }, async (_, i) => {
      const lease = await near.take("lock");
      if (i === 9) await near.on("renew").answered();
      most = Math.max(most, lease.token);
      await lease.unlock();
      return lease.token;
    });
    await world.pass(1);
    const waiting = far.take("lock");
    await world.pass(5);
    await first.unlock();
    const next = await waiting;
    expect([most - first.token, next.token]).toEqual([16, most + 1]);
    await next.unlock();
    expect(new Set(await Promise.all(callers)).size).toBe(callers.length);
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
