import { describe, expect, test } from "vitest";
import type { UnfencedLease } from "../../../src/index.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneLease, SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, inTurn, L, outcomeOf, parked, R, W, warm } from "./steps.ts";

// Redis executes a command, its reply is lost, and the driver does not send it again: the caller sees
// it fail. Whatever it did is taken back or found again, and no caller is let in twice.

const UNAVAILABLE = ["LOCK_UNAVAILABLE", undefined] as const;

/** A process whose driver sends nothing again, and another one; both receive messages. */
async function pair(world: Scene, how: "fail" | "forgotten" = "fail"): Promise<[SceneProcess, SceneProcess]> {
  const [near, far] = world.processes(2, { localHandoffs: 0 });
  await warm(world, near, far);
  await warm(world, far, near);
  near.losesCommands(how);
  return [near, far];
}

/** The reply to the next such command is lost. */
const loseReply = (near: SceneProcess, command: string): Promise<void> =>
  near.on(command).executed(() => near.commands.cut());

/** `near` holds the lock; a caller of `far` waits, and after it another one of `near`. */
async function contended(
  { pass }: Scene,
  near: SceneProcess,
  far: SceneProcess,
): Promise<{ held: SceneLease; others: Promise<SceneLease>; own: Promise<SceneLease> }> {
  const held = await near.take("lock");
  const others = far.take("lock");
  await pass(20);
  const own = near.take("lock");
  await pass(20);
  return { held, others, own };
}

describe("the reply is lost and the command fails", () => {
  test(
    "acquire that queues: its entry is left, the caller queues again and gets its turn",
    scene(async (world) => {
      const [near, far] = world.processes(2);
      near.losesCommands("fail");
      const held = await far.take("lock");
      // It tries, subscribes, and queues.
      const tried = near.on("acquire").answered();
      const waiting = near.take("lock");
      await tried;
      await loseReply(near, "acquire");
      await world.pass(1);
      const [first] = world.redis.places("lock:a");
      await world.pass(500);
      const places = world.redis.places("lock:a");
      expect([first !== undefined, places.length, places[0] === first]).toEqual([true, 1, false]);
      await held.unlock();
      await inTurn(world, waiting);
    }),
  );

  test(
    "a re-check of a parked caller: it keeps its place",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const { held, waiting } = await parked(world, far, [near]);
      const places = world.redis.places("lock:a");
      await loseReply(near, "recheck");
      await world.pass(500);
      expect(world.redis.places("lock:a")).toEqual(places);
      await held.unlock();
      await inTurn(world, waiting[0]);
    }),
  );

  test(
    "a re-check that says that the caller has the lock: the next one says it again, within the window",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const { held, waiting } = await parked(world, far, [near]);
      near.withoutMessages(60_000);
      const lost = loseReply(near, "recheck");
      await held.unlock();
      const granted = world.redis.holds("lock:a");
      const { result: lease, took } = await world.timed(waiting[0]);
      await lost;
      expect(took).toBeLessThan(W);
      expect(world.redis.holds("lock:a")).toEqual(granted);
      await lease.unlock();
    }),
  );

  test(
    "release without a waiter: unlock() rejects, and the lock is free",
    scene(async (world) => {
      const [near] = await pair(world);
      const held = await near.take("lock");
      const lost = loseReply(near, "release");
      const outcome = outcomeOf(held.unlock());
      await lost;
      expect([await outcome, held.held]).toEqual([UNAVAILABLE, false]);
      expect(world.redis.holders("lock:a")).toEqual([]);
      // Told once.
      expect(await outcomeOf((held.lease as UnfencedLease).unlock())).toBeNull();
    }),
  );

  test(
    "release with a waiter: unlock() rejects, and the waiter holds it alone",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const { held, waiting } = await parked(world, near, [far]);
      const lost = loseReply(near, "release");
      const outcome = outcomeOf(held.unlock());
      await lost;
      const next = await waiting[0];
      expect(await outcome).toEqual(UNAVAILABLE);
      // The old hold is withdrawn.
      await near.on("leave").executed();
      expect([next.held, world.redis.holders("lock:a")]).toEqual([true, [far.number]]);
      await next.unlock();
    }),
  );

  test(
    "yield: unlock() rejects, and both waiters get their turns",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const { held, others, own } = await contended(world, near, far);
      const lost = loseReply(near, "yield");
      const outcome = outcomeOf(held.unlock());
      await lost;
      const second = await others;
      expect(await outcome).toEqual(UNAVAILABLE);
      await world.pass(500);
      // The entry that the yield made is left, another one stands for the caller.
      expect([world.redis.holders("lock:a"), world.redis.queue("lock:a")]).toEqual([
        [far.number],
        [near.number],
      ]);
      await second.unlock();
      await inTurn(world, own);
    }),
  );

  test(
    "yield, after its new hold was granted: unlock() resolves, because Redis has run it",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const { held, others, own } = await contended(world, near, far);
      near.losesCommands("fail");
      const executed = near.on("yield").executed(() => near.commands.freezeReplies(5_000));
      const outcome = outcomeOf(held.unlock());
      await executed;
      await (await others).unlock();
      const next = await own;
      near.commands.cut();
      expect(await outcome).toBeNull();
      expect(next.held).toBe(true);
      await next.unlock();
    }),
  );

  test(
    "a claim: the granted hold is left, and the caller acquires anew",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const { held, waiting } = await parked(world, far, [near], { lease: 20_000 });
      const lost = loseReply(near, "renew");
      await held.unlock();
      const { result: lease, took } = await world.timed(waiting[0]);
      await lost;
      expect(took).toBeLessThan(W);
      expect(lease.lease.remaining).toBeGreaterThan(15_000);
      expect(world.redis.holders("lock:a")).toEqual([near.number]);
      await lease.unlock();
    }),
  );

  test(
    "a renewal: an error event, a retry, and the lease goes on",
    scene(async (world) => {
      const [near] = await pair(world);
      const errors = near.heard("error");
      const renewed = near.heard("renew");
      const held = await near.take("lock");
      await loseReply(near, "renew");
      await world.until(() => renewed.length > 0);
      expect(errors).toMatchObject([{ code: "LOCK_UNAVAILABLE" }]);
      await world.pass(L);
      expect(held.held).toBe(true);
      await held.unlock();
    }),
  );

  test(
    "an extension: it rejects, and the lease stays as it was",
    scene(async (world) => {
      const [near] = await pair(world);
      const held = await near.take("lock", { lease: 10_000 });
      near.member.leaseTime = 40_000;
      const lost = loseReply(near, "renew");
      const outcome = outcomeOf(held.lease.extend(40_000));
      await lost;
      expect(await outcome).toEqual(UNAVAILABLE);
      expect([held.held, held.lease.signal.aborted]).toEqual([true, false]);
      expect(held.lease.remaining).toBeLessThan(10_000);
      await world.pass(100);
      await held.unlock();
      expect(world.redis.holders("lock:a")).toEqual([]);
    }),
  );

  test(
    "an extension, while Redis is away for longer than the known lease: the lock is given back",
    scene(async (world) => {
      const [near] = await pair(world);
      const held = await near.take("lock", { lease: 1_000 });
      near.member.leaseTime = 600_000;
      const lost = near.on("renew").executed(() => near.commands.cut({ back: 20_000 }));
      const outcome = outcomeOf(held.lease.extend(600_000));
      await lost;
      expect(await outcome).toEqual(UNAVAILABLE);
      await world.pass(19_000);
      expect(held.held).toBe(false);
      expect(world.redis.left("lock:a")).toBeGreaterThan(500_000);
      await world.pass(3_000);
      expect(world.redis.holders("lock:a")).toEqual([]);
      await held.unlock().catch(() => {});
    }),
  );

  test(
    "leave: sent again, and the holder keeps the lock",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const held = await far.take("lock");
      const enough = new AbortController();
      const left = near.take("lock", { signal: enough.signal }).catch((reason: unknown) => reason);
      await world.pass(20);
      const lost = near.on("leave").sent(() => near.commands.cut());
      enough.abort("enough");
      await lost;
      expect(await left).toBe("enough");
      await near.on("leave").executed();
      expect([world.redis.queue("lock:a"), world.redis.holders("lock:a")]).toEqual([[], [far.number]]);
      await held.unlock();
    }),
  );

  test(
    "force-release: it rejects, and has happened; the waiter has the lock",
    scene(async (world) => {
      const [near, far] = await pair(world);
      const [holder] = world.processes(1);
      const { held, waiting } = await parked(world, holder, [far]);
      world.shows(/two holders of lock:a/);
      const lost = loseReply(near, "force-release");
      const outcome = outcomeOf(near.does(() => near.client.lock("lock:a").forceUnlock()));
      await lost;
      const next = await waiting[0];
      expect(await outcome).toEqual(UNAVAILABLE);
      expect((await outcomeOf(held.unlock()))?.[0]).toBe("LOCK_LOST");
      await next.unlock();
    }),
  );
});

test(
  "the reply to the first command of a call is lost and the command fails: the call does, and nothing stays",
  scene(async (world) => {
    const [near, far] = await pair(world);
    const held = await far.take("lock");
    const lost = loseReply(near, "acquire");
    const outcome = outcomeOf(near.take("lock"));
    await lost;
    expect(await outcome).toEqual(UNAVAILABLE);
    await world.pass(500);
    expect(world.redis.queue("lock:a")).toEqual([]);
    await held.unlock();
  }),
);

describe("a reply is lost and the driver drops the command silently", () => {
  test(
    "a re-check: it does not cost the turn",
    scene(async (world) => {
      const [near, far] = await pair(world, "forgotten");
      const { held, waiting } = await parked(world, far, [near]);
      near.withoutMessages(60_000);
      const lost = loseReply(near, "recheck");
      await held.unlock();
      const granted = world.redis.holds("lock:a");
      const { result: lease, took } = await world.timed(waiting[0]);
      await lost;
      expect(took).toBeLessThanOrEqual(2 * R);
      expect(world.redis.holds("lock:a")).toEqual(granted);
      await lease.unlock();
    }),
  );

  test.each(["acquire", "renew", "release"] as const)("%s: refused at once", (command) =>
    scene(async (world) => {
      const [near] = await pair(world, "forgotten");
      const held = command === "acquire" ? null : await near.take("lock", { lease: 10_000 });
      const calls = {
        acquire: () => near.take("lock"),
        renew: () => (held as SceneLease).lease.extend(20_000),
        release: () => (held as SceneLease).unlock(),
      };
      near.member.leaseTime = 40_000;
      const lost = loseReply(near, command);
      const refused = world.timed(calls[command]().catch((error: unknown) => error));
      await lost;
      const { result, took } = await refused;
      expect(result).toMatchObject({
        code: "LOCK_UNAVAILABLE",
        message: expect.stringContaining("is not sent again"),
      });
      expect(took).toBeLessThan(50);
      await world.pass(500);
      if (command === "renew") await held?.unlock();
      expect(world.redis.holders("lock:a")).toEqual([]);
    })(),
  );

  test(
    "commands that wait for the reconnect are not lost: they are sent then",
    scene(async (world) => {
      const [near] = await pair(world, "forgotten");
      near.commands.cut({ back: 300 });
      await world.pass(5);
      const { result: lease, took } = await world.timed(near.take("lock"));
      expect(took).toBeGreaterThan(290);
      expect(took).toBeLessThan(295 + BY_MESSAGE);
      await lease.unlock();
    }),
  );

  test(
    "a command that has waited for the connection, and was sent, is lost like any other",
    scene(async (world) => {
      const [near] = await pair(world, "forgotten");
      near.commands.cut({ back: 300 });
      await world.pass(5);
      const lost = loseReply(near, "acquire");
      const refused = near.take("lock").catch((error: unknown) => error);
      await lost;
      expect(await refused).toMatchObject({ code: "LOCK_UNAVAILABLE" });
      await world.pass(500);
      expect(world.redis.holders("lock:a")).toEqual([]);
    }),
  );
});
