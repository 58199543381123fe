import { describe, expect, test } from "vitest";
import type { KindName } from "../kinds.ts";
import { FRESH, LINGER, S } from "./caching.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, outcomeOf } from "./steps.ts";

// docs/guarantees.md, "Cached locks" and "Cached reads".

/** A process that caches the lock with no caller inside. */
async function keep({ pass }: Scene, one: SceneProcess, kind: KindName = "lock"): Promise<void> {
  for (let i = 0; i < 500; i++) {
    await (await one.take(kind)).unlock();
    await pass(1);
    if (i > 20 && one.client.stats().kept === 1) return;
  }
  throw new Error("it was never cached");
}

/** A process that caches the lock, and another one that receives messages. */
async function keeper(world: Scene, kind: KindName = "lock"): Promise<[SceneProcess, SceneProcess]> {
  const [one] = world.processes(1, { linger: LINGER });
  const [other] = world.processes(1);
  const held = await other.take("lock", { name: "w" });
  await outcomeOf(other.take("lock", { name: "w", wait: 10 }));
  await held.unlock();
  await keep(world, one, kind);
  return [one, other];
}

describe("a cached lock", () => {
  test(
    "is taken again and unlocked without a round trip",
    scene(async (world) => {
      const [one] = await keeper(world);
      const { result: lease, took } = await world.timed(one.take("lock"));
      expect(took).toBe(0);
      expect((await world.timed(lease.unlock())).took).toBe(0);
    }),
  );

  test(
    "no process wants it: it is released after `linger`",
    scene(async (world) => {
      const [one] = await keeper(world);
      expect(world.redis.holders("lock:a")).toEqual([one.number]);
      expect(world.redis.left("lock:a")).toBeLessThanOrEqual(S);
      await world.pass(LINGER + 300);
      expect(world.redis.holders("lock:a")).toEqual([]);
    }),
  );

  test(
    "a caller with `linger: 0` has it first: callers that come meanwhile share its hold, and later ones cache the lock",
    scene(async (world) => {
      const [one] = await keeper(world);
      await world.pass(LINGER + 300);
      const held = await one.client.lock("lock:a", { linger: 0 }).lock();
      const next = one.take("lock");
      await world.pass(10);
      await held.unlock();
      await (await next).unlock();
      await world.pass(10);
      expect(world.redis.holders("lock:a")).toEqual([]);
      await keep(world, one);
      expect(world.redis.holders("lock:a")).toEqual([one.number]);
      // And a caller with `linger: 0` takes the cached lock.
      const { result: lease, took } = await world.timed(one.client.lock("lock:a", { linger: 0 }).tryLock());
      expect([lease?.held, took < BY_MESSAGE]).toEqual([true, true]);
      await lease?.unlock();
    }),
  );

  test(
    "another process wants it: granted after two messages",
    scene(async (world) => {
      const [one, other] = await keeper(world);
      const recalled = one.heard("recall");
      const { result: next, took } = await world.timed(other.take("lock"));
      expect(took).toBeLessThan(2 * BY_MESSAGE);
      expect(recalled).toHaveLength(1);
      // Nor has the next caller of its own process.
      expect(await one.tryTake("lock")).toBeNull();
      await next.unlock();
    }),
  );

  test(
    "another process wants it, and a body is inside: granted after the body",
    scene(async (world) => {
      const [one, other] = await keeper(world);
      const inside = await one.take("lock");
      const waiting = other.take("lock");
      await world.pass(2_000);
      await inside.unlock();
      const { result: next, took } = await world.timed(waiting);
      expect(took).toBeLessThan(2 * BY_MESSAGE);
      await next.unlock();
    }),
  );

  test(
    "the event loop is blocked when another process wants it: granted when the loop goes on",
    scene(async (world) => {
      const [one, other] = await keeper(world);
      void one.does(() => one.block(1_500));
      const { result: next, took } = await world.timed(other.take("lock"));
      expect(took).toBeGreaterThan(1_400);
      expect(took).toBeLessThan(1_510);
      await next.unlock();
    }),
  );

  test(
    "another process calls tryLock() without `wait`: the lease, within 50 ms; null if a body is inside",
    scene(async (world) => {
      const [one, other] = await keeper(world);
      const { result: lease, took } = await world.timed(other.tryTake("lock"));
      expect(took).toBeLessThan(50);
      await lease?.unlock();
      expect(lease).not.toBeNull();
      const inside = await one.take("lock");
      expect(await other.tryTake("lock")).toBeNull();
      await inside.unlock();
    }),
  );

  test(
    "tryLock() of a client that is not subscribed yet, beside a caller that waits, and no answer comes: null after 50 ms more",
    scene(async (world) => {
      const [one] = await keeper(world);
      one.pause(10_000);
      const [late] = world.processes(1);
      const waiting = late.does(() => late.client.lock("lock:a").lock());
      const { result, took } = await world.timed(late.tryTake("lock"));
      expect([result, took < 50 + 5 * BY_MESSAGE]).toEqual([null, true]);
      await (await waiting).unlock();
    }),
  );

  test(
    "another process calls tryLock() without `wait`, and no answer comes: null after 50 ms",
    scene(async (world) => {
      const [one, other] = await keeper(world);
      one.pause(10_000);
      const { result: lease, took } = await world.timed(other.tryTake("lock"));
      expect(lease).toBeNull();
      expect(took).toBeGreaterThan(40);
      expect(took).toBeLessThan(60);
      await world.pass(1);
      expect([world.redis.queue("lock:a"), world.redis.holders("lock:a")]).toEqual([[], [one.number]]);
    }),
  );

  test.each([
    ["crashes", (one: SceneProcess) => one.crash()],
    ["is stopped", (one: SceneProcess) => one.pause(60_000)],
    ["is cut off from Redis", (one: SceneProcess) => one.cutOff(60_000)],
    ["has half-open connections", (one: SceneProcess) => one.freeze(60_000)],
  ] as const)("its process %s: granted after the rest of S, and 50 ms", (_, fault) =>
    scene(async (world) => {
      const [one, other] = await keeper(world);
      fault(one);
      const rest = world.redis.left("lock:a");
      expect(rest).toBeLessThanOrEqual(S);
      const { result: next, took } = await world.timed(other.take("lock"));
      expect(took).toBeGreaterThan(rest - 1);
      expect(took).toBeLessThan(rest + 50 + 10);
      await next.unlock();
      await world.pass(60_000);
    })(),
  );

  test(
    "its process is stopped for longer than S: when it goes on, it does not believe that it has it",
    scene(async (world) => {
      const [one, other] = await keeper(world);
      one.pause(2 * S);
      const next = await other.take("lock");
      const again = one.tryTake("lock");
      await world.pass(2 * S);
      expect([await again, next.held]).toEqual([null, true]);
      await next.unlock();
    }),
  );

  test(
    "its event loop is blocked for longer than S: it does not believe that it has it",
    scene(async (world) => {
      const [one, other] = await keeper(world);
      const again = one.does(() => {
        one.block(S + 500);
        return one.client.lock("lock:a").tryLock();
      });
      const next = await other.take("lock");
      expect(await again).toBeNull();
      expect(next.held).toBe(true);
      await next.unlock();
    }),
  );

  test(
    "its process is stopped: `tryLock()` with a wait of more than S has the lease",
    scene(async (world) => {
      const [one, other] = await keeper(world);
      one.pause(60_000);
      const { result: next, took } = await world.timed(other.take("lock", { wait: S + 60 }));
      expect(took).toBeLessThan(S + 60);
      await next.unlock();
      await world.pass(60_000);
    }),
  );

  test.each(["is cut off from Redis", "has half-open connections"] as const)(
    "its process %s, and one of its callers wants it: it is not taken from memory later than 100 ms after an answer",
    (what) =>
      scene(async (world) => {
        const [one, other] = await keeper(world);
        if (what === "is cut off from Redis") one.cutOff(10_000);
        else one.freeze(10_000);
        await world.pass(FRESH);
        const refused = outcomeOf(one.tryTake("lock"));
        const next = await other.take("lock");
        expect((await refused)?.[0]).toBe("LOCK_UNAVAILABLE");
        await world.pass(10_000);
        expect(next.held).toBe(true);
        await next.unlock();
        const again = await one.take("lock");
        expect(again.token).toBeGreaterThan(next.token);
        await again.unlock();
      })(),
  );

  test(
    "Redis restarts without data: no caller of its process believes that it has it",
    scene(async (world) => {
      const [one, other] = await keeper(world);
      await world.pass(FRESH);
      world.redis.restart(100, { isEmpty: true });
      const next = await other.take("lock");
      expect(await one.tryTake("lock").catch(() => null)).toBeNull();
      expect(next.held).toBe(true);
      await next.unlock();
      const again = await one.take("lock");
      expect(again.token).toBeGreaterThan(next.token);
      await again.unlock();
    }),
  );

  test.each(["free", "handed over to another process"] as const)(
    "the reply to its release is lost, and the command comes again when the lock is %s: no loss is reported",
    (state) =>
      scene(async (world) => {
        const [one, other] = await keeper(world);
        const lost = one.heard("lost");
        const cut = one.on("release-stays").executed(() => one.commands.cut());
        await world.pass(FRESH);
        // It does not learn that another process waits.
        one.messages.freezeReplies(60_000);
        const next = state === "free" ? null : other.take("lock");
        await cut;
        await one.on("release-stays").executed();
        await world.pass(100);
        expect(lost).toEqual([]);
        await (await next)?.unlock();
      })(),
  );

  test(
    "the same, and the second copy finds another server's data: a loss is reported",
    scene(async (world) => {
      const [one] = await keeper(world);
      const lost = one.heard("lost");
      await one.on("release-stays").executed(() => {
        one.commands.cut({ back: 200 });
        world.redis.dropAll();
      });
      await world.until(() => lost.length > 0);
      expect(lost.map(({ error }) => error.reason)).toEqual(["unknown"]);
    }),
  );

  test(
    "its connection for messages breaks: released when it reaches Redis, and nothing is cached until it is back",
    scene(async (world) => {
      const [one, other] = await keeper(world);
      one.messages.cut({ back: 5_000 });
      const { took } = await world.timed(world.until(() => world.redis.holders("lock:a").length === 0));
      expect(took).toBeLessThan(300);
      expect(one.client.stats().kept).toBe(0);
      for (let i = 0; i < 20; i++) await (await one.take("lock", { name: "b" })).unlock();
      expect(one.client.stats().kept).toBe(0);
      expect(one.client.stats()).toMatchObject({ recalled: 0, recalledUnused: 0 });
      await (await other.take("lock")).unlock();
    }),
  );

  test(
    "its connection for commands breaks: released when it reaches Redis",
    scene(async (world) => {
      const [one, other] = await keeper(world);
      one.commands.cut({ back: 500 });
      const { result: next, took } = await world.timed(other.take("lock"));
      expect(took).toBeLessThan(500 + 2 * BY_MESSAGE);
      await next.unlock();
    }),
  );

  test(
    "the waiter's message is lost while the lock is in use: released within 100 ms",
    scene(async (world) => {
      const [one, other] = await keeper(world);
      one.messages.freezeReplies(10_000);
      const waiting = world.timed(other.take("lock"));
      let isOver = false;
      const used = (async () => {
        while (!isOver) {
          const lease = await one.take("lock");
          await world.pass(5);
          await lease.unlock();
          await world.pass(1);
        }
      })();
      const { result: next, took } = await waiting;
      isOver = true;
      expect(took).toBeLessThan(FRESH + 50);
      await next.unlock();
      await used;
    }),
  );

  test(
    "the waiter's message is lost while the lock is idle: released after `linger` and 250 ms",
    scene(async (world) => {
      const [one, other] = await keeper(world);
      // The last renewal of its use is over.
      await world.pass(FRESH);
      one.messages.freezeReplies(10_000);
      const { result: next, took } = await world.timed(other.take("lock"));
      expect(took).toBeGreaterThan(LINGER / 2);
      expect(took).toBeLessThan(LINGER + 250 + BY_MESSAGE);
      await next.unlock();
    }),
  );

  test(
    "Redis loses the key: its callers may enter for 100 ms after Redis last answered; then `lost` reports it",
    scene(async (world) => {
      const [one, other] = await keeper(world);
      // Redis answers a renewal or an acquire now.
      await (await one.take("lock")).unlock();
      world.redis.drop("lock:a");
      world.shows(/token \d+ after|two holders/);
      const next = await other.take("lock");
      const early = await one.tryTake("lock");
      expect(early === null || early.token < next.token).toBe(true);
      await early?.unlock().catch(() => {});
      await world.pass(FRESH + 50);
      expect(await one.tryTake("lock")).toBeNull();
      await next.unlock();
    }),
  );

  test.each(["the key", "all keys"] as const)(
    "Redis loses %s while it is idle: the next caller has it at once, alone",
    (what) =>
      scene(async (world) => {
        const [one, other] = await keeper(world);
        // The last renewal of its use is over.
        await world.pass(FRESH + 50);
        if (what === "all keys") world.redis.dropAll();
        else world.redis.drop("lock:a");
        const { result: next, took } = await world.timed(other.take("lock"));
        expect(took).toBeLessThan(BY_MESSAGE);
        // It must ask.
        expect(await one.tryTake("lock")).toBeNull();
        const again = one.take("lock");
        await next.unlock();
        const { token, unlock } = await again;
        expect(token).toBeGreaterThan(next.token);
        await unlock();
      })(),
  );

  test(
    "forceUnlock(), and the process does not answer within 50 ms: another caller may get it, with a larger token",
    scene(async (world) => {
      const [one, other] = await keeper(world);
      one.pause(500);
      await other.client.lock("lock:a").forceUnlock();
      const next = await other.take("lock");
      await world.pass(500);
      const again = one.take("lock");
      await world.pass(50);
      expect(next.held).toBe(true);
      await next.unlock();
      expect((await again).token).toBeGreaterThan(next.token);
      await (await again).unlock();
    }),
  );

  test(
    "a body of more than 100 ms has the full lease, and is not cached",
    scene(async (world) => {
      const [one] = await keeper(world);
      const lease = await one.take("lock");
      await world.pass(FRESH + 50);
      expect(world.redis.left("lock:a")).toBeGreaterThan(S);
      await lease.unlock();
      await world.pass(5);
      expect([one.client.stats().kept, world.redis.holders("lock:a")]).toEqual([0, []]);
    }),
  );

  test(
    "an outage begins in the first 100 ms of a body, and lasts for S: the lock is lost",
    scene(async (world) => {
      const [one, other] = await keeper(world);
      const lease = await one.take("lock");
      one.cutOff(2 * S);
      const { result: next, took } = await world.timed(other.take("lock"));
      expect(took).toBeLessThan(S + 60);
      expect(lease.lease.signal.reason).toMatchObject({ reason: "expired" });
      await next.unlock();
      await lease.unlock().catch(() => {});
      await world.pass(2 * S);
    }),
  );

  test(
    "close() leaves it free",
    scene(async (world) => {
      const [one, other] = await keeper(world);
      await one.does(() => one.client.close());
      expect((await world.timed(other.take("lock").then((next) => next.unlock()))).took).toBeLessThan(5);
    }),
  );
});

describe("cached reads", () => {
  test(
    "a writer of another process has the lock after two messages",
    scene(async (world) => {
      const [, other] = await keeper(world, "read");
      const { result: next, took } = await world.timed(other.take("write"));
      expect(took).toBeLessThan(2 * BY_MESSAGE);
      await next.unlock();
    }),
  );

  test(
    "several processes cache them: all are notified together",
    scene(async (world) => {
      const [one, writer] = await keeper(world, "read");
      const more = world.processes(3, { linger: LINGER });
      for (const reader of more) await keep(world, reader, "read");
      await (await one.take("read")).unlock();
      const holders = world.redis.holders("rw:a");
      expect(holders.length).toBeGreaterThan(1);
      const { result: next, took } = await world.timed(writer.take("write"));
      expect(took).toBeLessThan(2 * BY_MESSAGE);
      await next.unlock();
    }),
  );

  test(
    "the message to one is lost: the writer has the lock at the latest after S and 50 ms, or `linger` and 250 ms",
    scene(async (world) => {
      const [one, other] = await keeper(world, "read");
      one.messages.freezeReplies(10_000);
      const { result: next, took } = await world.timed(other.take("write"));
      expect(took).toBeLessThan(Math.max(S + 50, LINGER + 250) + BY_MESSAGE);
      await next.unlock();
    }),
  );

  test(
    "write.tryLock() without `wait`: the lease within 100 ms, or null if a reader is inside",
    scene(async (world) => {
      const [one, other] = await keeper(world, "read");
      const { result: lease, took } = await world.timed(other.tryTake("write"));
      expect(lease).not.toBeNull();
      expect(took).toBeLessThan(100);
      await lease?.unlock();
      const reader = await one.take("read");
      expect(await other.tryTake("write")).toBeNull();
      await reader.unlock();
    }),
  );

  test(
    "a writer of its own process has the lock after one round trip",
    scene(async (world) => {
      const [one] = await keeper(world, "read");
      const { result: writer, took } = await world.timed(one.take("write"));
      expect(took).toBeLessThan(0.5);
      await writer.unlock();
    }),
  );

  test(
    "write.tryLock() is aborted before a process that caches them has answered: they stay cached",
    scene(async (world) => {
      const [one, other] = await keeper(world, "read");
      const enough = new AbortController();
      one.messages.freezeReplies(20);
      const trying = outcomeOf(other.tryTake("write", { signal: enough.signal }));
      await world.pass(10);
      enough.abort(new Error("enough"));
      await trying;
      await world.pass(50);
      expect(one.client.stats().kept).toBe(1);
    }),
  );

  test(
    "a writer waits while a reader is inside: that one keeps its lease, and no other one enters",
    scene(async (world) => {
      const [one, other] = await keeper(world, "read");
      const reader = await one.take("read");
      const writing = other.take("write");
      await world.pass(5);
      expect(await one.tryTake("read")).toBeNull();
      await world.pass(50);
      expect(reader.held).toBe(true);
      await reader.unlock();
      const { result: writer, took } = await world.timed(writing);
      expect(took).toBeLessThan(BY_MESSAGE);
      await writer.unlock();
    }),
  );

  test(
    "write.tryLock() of another process finds a reader inside: others enter without a command, and they stay cached",
    scene(async (world) => {
      const [one, other] = await keeper(world, "read");
      const reader = await one.take("read");
      expect(await other.tryTake("write")).toBeNull();
      const { sent } = one;
      const second = await one.take("read");
      expect(one.sent).toBe(sent);
      await reader.unlock();
      await second.unlock();
    }),
  );

  test(
    "a writer's message is missed, and the connection breaks, while a reader is inside: they are not cached after that",
    scene(async (world) => {
      const [one, other] = await keeper(world, "read");
      const reader = await one.take("read");
      one.messages.freezeReplies(10_000);
      const writing = other.take("write");
      await world.pass(5);
      one.commands.cut();
      await world.pass(30);
      await reader.unlock();
      const { result: writer, took } = await world.timed(writing);
      expect(took).toBeLessThan(BY_MESSAGE);
      await writer.unlock();
    }),
  );

  test(
    "Redis restarts without data while a reader is inside: the next one asks it",
    scene(async (world) => {
      const [one, other] = await keeper(world, "read");
      const reader = await one.take("read");
      world.redis.restart(5, { isEmpty: true });
      await world.pass(20);
      world.shows(/two holders of rw:a/);
      const writer = await other.take("write");
      expect(await one.tryTake("read")).toBeNull();
      await reader.unlock().catch(() => {});
      await writer.unlock();
    }),
  );

  test(
    "a writer of its own process wants the lock: it waits for others as usual, and `close()` refuses it",
    scene(async (world) => {
      const [one, other] = await keeper(world, "read");
      const reader = await other.take("read");
      const writing = outcomeOf(one.take("write"));
      await world.pass(100);
      expect(one.client.stats()).toMatchObject({ kept: 0, waiting: 1 });
      await one.does(() => one.client.close({ grace: 0 }));
      expect(await writing).toEqual(["CLIENT_CLOSED", undefined]);
      await reader.unlock();
    }),
  );

  test(
    "a writer of its own process has the lock at `close()`: it has it until its `unlock()`, within `grace`",
    scene(async (world) => {
      const [one, other] = await keeper(world, "read");
      const lease = await one.take("write");
      const closed = one.does(() => one.client.close({ grace: 1_000 }));
      await world.pass(300);
      expect(lease.held).toBe(true);
      await lease.unlock();
      await closed;
      await (await other.take("write")).unlock();
    }),
  );

  test(
    "its process crashes: the writer has the lock after the rest of S",
    scene(async (world) => {
      const [one, other] = await keeper(world, "read");
      one.crash();
      const rest = world.redis.left("rw:a");
      const { result: next, took } = await world.timed(other.take("write"));
      expect(rest).toBeLessThanOrEqual(S);
      expect(took).toBeLessThan(rest + 50 + BY_MESSAGE);
      await next.unlock();
    }),
  );
});
