import { describe, expect, test } from "vitest";
import { EXPIRY_JITTER } from "../../../src/defaults.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, L, outcomeOf } from "./steps.ts";

// Redisson's protocol: its count of entries, messages that come before or after an answer, and losses.

const KINDS = ["redissonLock", "redissonFencedLock"] as const;
const KEYS = { redissonLock: "redisson:a", redissonFencedLock: "redissonFenced:a" };
const KEY = KEYS.redissonLock;

/** How often it is entered, by each of its holders: there is one. */
const counts = ({ redis }: Scene, key: string): string[] => [...redis.hash(key).values()];

describe.each(KINDS)("%s: the reply is lost, and the command comes again", (kind) => {
  const key = KEYS[kind];
  /** The reply to the next such command is lost; resolves when it was executed twice. */
  const lose = (one: SceneProcess, command: string): Promise<void> =>
    one
      .on(command)
      .executed(() => one.commands.cut())
      .then(() => one.on(command).executed());

  test(
    "of an acquire: it counts once, and takes one token",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const twice = lose(one, "acquire");
      const lease = await one.take(kind, { lease: 20_000 });
      await twice;
      expect(counts(world, key)).toEqual(["1"]);
      if (kind === "redissonFencedLock") expect(lease.token).toBe(1);
      await lease.unlock();
      const next = await other.take(kind);
      if (kind === "redissonFencedLock") expect(next.token).toBe(2);
      await next.unlock();
    }),
  );

  test(
    "of an entry and of an exit in a scope: the count is right",
    scene(async (world) => {
      const [one] = world.processes(1);
      await one.scope(async () => {
        const outer = await one.take(kind, { lease: 20_000 });
        const entered = lose(one, "recount");
        const inner = await one.take(kind);
        await entered;
        expect([counts(world, key), inner.token]).toEqual([["2"], outer.token]);
        const left = lose(one, "recount");
        await inner.unlock();
        await left;
        expect(counts(world, key)).toEqual(["1"]);
        await outer.unlock();
      });
      expect(counts(world, key)).toEqual([]);
    }),
  );

  test(
    "of an extension: the lease is extended, and the count is the same",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const held = await one.take(kind, { lease: 5_000 });
      const twice = lose(one, "renew");
      await (held.lease as unknown as { extend(ms: number): Promise<void> }).extend(60_000);
      await twice;
      expect(counts(world, key)).toEqual(["1"]);
      await world.pass(50_000);
      expect([held.held, await other.tryTake(kind)]).toEqual([true, null]);
      await held.unlock();
    }),
  );
});

test(
  "an exit that Redis did not confirm: the lock is not handed off, and the next caller of the process has a new hold",
  scene(async (world) => {
    const [one] = world.processes(1);
    let ask = (): void => {};
    const asked = new Promise<void>((resolve) => {
      ask = resolve;
    });
    // Outside of the scope.
    const next = asked.then(() => one.take("redissonLock"));
    await one.scope(async () => {
      const outer = await one.take("redissonLock", { lease: 20_000 });
      const inner = await one.take("redissonLock");
      ask();
      await world.pass(10);
      one.losesCommands("fail");
      const cut = one.on("recount").sent(() => one.commands.cut());
      const unlocking = outcomeOf(inner.unlock());
      await cut;
      expect(await unlocking).toEqual(["LOCK_UNAVAILABLE", undefined]);
      await world.pass(100);
      expect(counts(world, KEY)).toEqual(["2"]);
      await outer.unlock();
    });
    const lease = await next;
    expect(counts(world, KEY)).toEqual(["1"]);
    await lease.unlock();
  }),
);

test.each(KINDS)("%s: a call that would enter it again, and whose command fails: LOCK_UNAVAILABLE", (kind) =>
  scene(async (world) => {
    const [one] = world.processes(1);
    await one.scope(async () => {
      const outer = await one.take(kind, { lease: 20_000 });
      one.losesCommands("fail");
      const cut = one.on("recount").sent(() => one.commands.cut());
      const entering = outcomeOf(one.take(kind));
      await cut;
      expect(await entering).toEqual(["LOCK_UNAVAILABLE", undefined]);
      expect(outer.held).toBe(true);
      await world.pass(100);
      await outer.unlock();
    });
    expect(counts(world, KEYS[kind])).toEqual([]);
  })(),
);

describe("waiting", () => {
  test(
    "a lock became free without a message: a caller that would not wait makes the waiting one try",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const held = await other.take("redissonLock");
      const waiting = one.take("redissonLock");
      await world.pass(100);
      world.redis.dropKey(KEY);
      world.shows(/two holders/);
      expect(await one.tryTake("redissonLock")).toBeNull();
      const { result: lease, took } = await world.timed(waiting);
      expect(took).toBeLessThan(10);
      await lease.unlock();
      await held.unlock().catch(() => {});
    }),
  );

  test(
    "a caller that would not wait does not try right after a release: earlier callers, also of others, come first",
    scene(async (world) => {
      const [one] = world.processes(1, { localHandoffs: 0 });
      const [other] = world.processes(1);
      let lease = await one.take("redissonLock");
      let turns = 0;
      let isOver = false;
      const others = (async () => {
        for (; !isOver; turns++) await (await other.take("redissonLock")).unlock();
      })();
      for (let round = 0; round < 10; round++) {
        const next = one.take("redissonLock");
        await world.pass(50);
        // The other process receives the message first.
        one.messages.freezeReplies(2);
        const unlocking = lease.unlock();
        const tried = one.tryTake("redissonLock");
        await unlocking;
        lease = await next;
        expect(await tried).toBeNull();
      }
      expect(turns).toBeGreaterThanOrEqual(10);
      isOver = true;
      await lease.unlock();
      await others;
    }),
  );

  test(
    "the message of that release is lost: the try comes a little later",
    scene(async (world) => {
      const [one] = world.processes(1, { localHandoffs: 0 });
      const lease = await one.take("redissonLock");
      const next = one.take("redissonLock");
      await world.pass(100);
      one.messages.freezeReplies(60_000);
      const unlocking = lease.unlock();
      expect(await one.tryTake("redissonLock")).toBeNull();
      await unlocking;
      const { result, took } = await world.timed(next);
      expect(took).toBeLessThan(1_000);
      await result.unlock();
    }),
  );

  test(
    "a try is sent before SUBSCRIBE is acknowledged, and answered after it: it is not the last one",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const held = await other.take("redissonLock");
      const waiting = one.take("redissonLock");
      await one.on("acquire").executed();
      await one.on("acquire").executed(() => {
        one.messages.freeze(500);
        one.commands.freezeReplies(1_000);
      });
      // No process is subscribed yet.
      await held.unlock();
      const { result: lease, took } = await world.timed(waiting);
      expect(took).toBeLessThan(1_010);
      await lease.unlock();
    }),
  );

  test(
    "a try is sent before the subscriber is lost, and answered when it is back: it is not the last one either",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const held = await other.take("redissonLock");
      const waiting = one.take("redissonLock");
      await world.pass(100);
      one.commands.freezeReplies(2_000);
      // A message that it may be free: it tries.
      const trying = one.on("acquire").executed();
      world.redis.publish(`redisson_lock__channel:{${KEY}}`, "0");
      await trying;
      one.messages.cut({ back: 500 });
      await world.pass(10);
      // No process receives its message.
      await held.unlock();
      const { result: lease, took } = await world.timed(waiting);
      expect(took).toBeLessThan(2_010);
      await lease.unlock();
    }),
  );

  test(
    "a release that finds nothing publishes nothing: the waiters of its process try all the same",
    scene(async (world) => {
      const [one] = world.processes(1, { localHandoffs: 0 });
      const lease = await one.take("redissonLock");
      const next = one.take("redissonLock");
      await world.pass(100);
      world.redis.dropKey(KEY);
      expect(await outcomeOf(lease.unlock())).toEqual(["LOCK_LOST", "gone"]);
      const { result: again, took } = await world.timed(next);
      expect(took).toBeLessThan(BY_MESSAGE);
      await again.unlock();
    }),
  );

  test(
    "every SUBSCRIBE fails at once: the next ones come after 50, 100, 200 … ms, though tries are answered in between",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const times: number[] = [];
      const { link } = one.member;
      const listen = link.listen.bind(link);
      link.listen = (...options) => {
        const listener = listen(...options);
        if (times.length < 7)
          listener.subscribe = () => {
            times.push(world.now());
            return Promise.reject(new Error("ERR invalid request"));
          };
        return listener;
      };
      const held = await other.take("redissonLock");
      const waiting = one.take("redissonLock");
      await world.until(() => times.length === 7);
      const pauses = times.slice(1).map((at, i) => at - (times[i] ?? 0));
      for (const [i, pause] of pauses.entries()) expect(pause).toBeGreaterThan(50 * 2 ** i - 1);
      await held.unlock();
      const { took } = await world.timed(waiting.then((lease) => lease.unlock()));
      expect(took).toBeLessThan(5_000);
    }),
  );
});

test.each(KINDS)(
  "%s: tryLock() after a release here whose message is late is answered, although Redis must answer sooner",
  (kind) =>
    scene(async (world) => {
      const [one] = world.processes(1, { replyTimeout: 30 });
      const held = await one.take(kind);
      const waiting = one.take(kind);
      await world.pass(100);
      one.messages.freeze(300);
      await held.unlock();
      expect(await one.tryTake(kind)).toBeNull();
      await (await waiting).unlock();
    })(),
);

test.each(KINDS)(
  "%s: its connection is away for longer than the lease: `expired` before another caller has it",
  (kind) =>
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const held = await one.take(kind);
      const { signal } = held.lease;
      one.cutOff(2 * L);
      const { result: next, took } = await world.timed(other.take(kind));
      expect(took).toBeLessThanOrEqual(L + EXPIRY_JITTER + 10);
      expect([held.held, signal.reason]).toMatchObject([false, { reason: "expired" }]);
      expect(await outcomeOf(held.unlock())).toEqual(["LOCK_LOST", "expired"]);
      await next.unlock();
      await world.pass(2 * L);
    })(),
);

test.each(KINDS.flatMap((kind) => [[kind, "gone"] as const, [kind, "taken"] as const]))(
  "%s: another client force-releases it: the signal aborts at the next renewal (%s)",
  (kind, reason) =>
    scene(async (world) => {
      const [one, other, admin] = world.processes(3);
      const held = await one.take(kind);
      const { signal } = held.lease;
      const { product } = admin.member.process;
      await admin.does(() => product[kind](admin.client, KEYS[kind]).forceUnlock());
      if (reason === "taken") world.shows(/two holders/);
      const next = reason === "taken" ? await other.take(kind) : null;
      await world.pass(L / 3);
      expect([held.held, signal.reason]).toMatchObject([false, { reason }]);
      expect(await outcomeOf(held.unlock())).toEqual(["LOCK_LOST", reason]);
      await next?.unlock();
    })(),
);
