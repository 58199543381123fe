import { describe, expect, test } from "vitest";
import { scene } from "./scene.ts";
import { inTurn, outcomeOf, parked, warm } from "./steps.ts";

// The client is closed while a fault is on its way, at each step of a lock's life.

const CLOSED = ["CLIENT_CLOSED", undefined] as const;

describe("close()", () => {
  test(
    "while a yield is unanswered: the unlock completes, its waiter is refused, and the next client gets the lock",
    scene(async (world) => {
      const [near, far] = world.processes(2, { localHandoffs: 0 });
      await warm(world, near, far);
      const { held, waiting } = await parked(world, near, [far]);
      const own = outcomeOf(near.take("lock"));
      await world.pass(20);
      near.commands.freeze(1_000);
      const unlocking = held.unlock();
      const closing = near.does(() => near.client.close());
      expect(await own).toEqual(CLOSED);
      await closing;
      await unlocking;
      await (await waiting[0]).unlock();
    }),
  );

  test(
    "while a release is unanswered and its reply is lost: the lock is the next client's",
    scene(async (world) => {
      const [near, far] = world.processes(2);
      const { held, waiting } = await parked(world, near, [far]);
      const cut = near.on("release").executed(() => near.commands.cut());
      const unlocking = held.unlock();
      const closing = world.timed(near.does(() => near.client.close()));
      await cut;
      await unlocking;
      expect((await closing).took).toBeLessThan(100);
      await (await waiting[0]).unlock();
    }),
  );

  test(
    "without grace, and a second copy of a release finds the next client's hold: lost for an unknown reason",
    scene(async (world) => {
      const [near, far] = world.processes(2);
      const held = await near.take("lock", { lease: 20_000 });
      near.commands.freezeReplies(5_000);
      const unlocking = outcomeOf(held.unlock());
      await near.on("release").executed();
      await near.does(() => near.client.close({ grace: 0 }));
      const next = await far.take("lock");
      near.commands.cut();
      expect(await unlocking).toEqual(["LOCK_LOST", "unknown"]);
      await next.unlock();
    }),
  );

  test(
    "a holder unlocks late in the grace: its release is answered",
    scene(async (world) => {
      const [near] = world.processes(1, { connection: "own", replyTimeout: 1_000 });
      const held = await near.take("lock", { lease: 20_000 });
      world.delay(5);
      const closing = near.does(() => near.client.close({ grace: 5_000 }));
      await world.pass(2_000);
      const { result, took } = await world.timed(outcomeOf(held.unlock()));
      expect(result).toBeNull();
      expect(took).toBeLessThan(20);
      await closing;
    }),
  );

  test(
    "a listener calls close() in the midst of it: the first one's grace counts, and both end together",
    scene(async (world) => {
      const [near, far] = world.processes(2);
      const held = await far.take("lock");
      const own = await near.take("lock", { name: "b" });
      const waiting = outcomeOf(near.take("lock"));
      await world.pass(20);
      const seconds: Promise<void>[] = [];
      near.client.on("giveup", () => seconds.push(near.client.close({ grace: 0 })));
      const first = near.does(() => near.client.close({ grace: 5_000 }));
      expect(await waiting).toEqual(CLOSED);
      await world.pass(100);
      expect(own.held).toBe(true);
      await own.unlock();
      expect(seconds).toHaveLength(1);
      expect((await world.timed(Promise.all([first, ...seconds]))).took).toBeLessThan(10);
      await held.unlock();
    }),
  );

  test(
    "while a re-check is unanswered: its place is given up, and no late copy brings it back",
    scene(async (world) => {
      const [near, far] = world.processes(2);
      const held = await far.take("lock");
      const waiting = outcomeOf(near.take("lock"));
      await near.on("recheck").sent(() => near.commands.cut({ copies: 3_000, back: 20 }));
      const closing = near.does(() => near.client.close());
      expect(await waiting).toEqual(CLOSED);
      await closing;
      expect(world.redis.queue("lock:a")).toEqual([]);
      await near.on("recheck").executed();
      expect(world.redis.queue("lock:a")).toEqual([]);
      await held.unlock();
    }),
  );

  test(
    "while a grant is under way: the lock goes on to the next client by message",
    scene(async (world) => {
      const [near, far, third] = world.processes(3);
      const held = await far.take("lock");
      const waiting = outcomeOf(near.take("lock"));
      await world.pass(20);
      const next = third.take("lock");
      await world.pass(20);
      near.messages.freezeReplies(20_000);
      await held.unlock();
      expect(world.redis.holders("lock:a")).toEqual([near.number]);
      await near.does(() => near.client.close());
      expect(await waiting).toEqual(CLOSED);
      await inTurn(world, next);
    }),
  );

  test(
    "while a place is given up and the reply is lost",
    scene(async (world) => {
      const [near, far] = world.processes(2);
      const held = await far.take("lock");
      const enough = new AbortController();
      const left = near.take("lock", { signal: enough.signal }).catch((reason: unknown) => reason);
      await world.pass(20);
      const cut = near.on("leave").executed(() => near.commands.cut());
      enough.abort("enough");
      expect(await left).toBe("enough");
      await near.does(() => near.client.close());
      await cut;
      expect(world.redis.queue("lock:a")).toEqual([]);
      await held.unlock();
    }),
  );

  test.each([0, 700])("while Redis is away: it waits no longer than its grace (%i ms)", (grace) =>
    scene(async (world) => {
      const [near, far] = world.processes(2);
      const own = await near.take("lock", { name: "b", lease: 20_000 });
      const held = await far.take("lock");
      const waiting = outcomeOf(near.take("lock"));
      await world.pass(20);
      near.cutOff(60_000);
      await world.pass(1);
      const { took } = await world.timed(near.does(() => near.client.close({ grace })));
      expect(took).toBeLessThan(2 * grace + 100);
      expect(await waiting).toEqual(CLOSED);
      expect(own.lease.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "closed" });
      await own.unlock().catch(() => {});
      await held.unlock();
      await world.pass(30_000);
    })(),
  );

  test(
    "while the caller tries again after a failure: it sends no further try",
    scene(async (world) => {
      const [near, far] = world.processes(2);
      const held = await far.take("lock");
      world.redis.refuse("NOREPLICAS");
      const waiting = outcomeOf(near.take("lock"));
      await near.on("acquire").refused();
      await near.on("acquire").refused();
      await near.does(() => near.client.close({ grace: 500 }));
      expect(await waiting).toEqual(CLOSED);
      const before = near.sent;
      world.redis.refuse(null);
      await world.pass(5_000);
      expect(near.sent).toBe(before);
      await held.unlock();
    }),
  );

  test(
    "waits for the answer to a release that is under way, and takes two commands",
    scene(async (world) => {
      const [one] = world.processes(1);
      const held = await one.take("lock");
      world.redis.flushScripts();
      const unlocking = held.unlock();
      await one.does(() => one.client.close());
      await unlocking;
      expect(world.redis.holders("lock:a")).toEqual([]);
    }),
  );

  test(
    "while a candidate's value is unanswered: its campaign ends when its grace is over",
    scene(async (world) => {
      const [near, far] = world.processes(2);
      const silent = near.on("proclaim").sent(() => near.commands.freeze(60_000));
      const campaign = outcomeOf(near.client.election("e").campaign());
      await silent;
      const closing = near.does(() => near.client.close({ grace: 500 }));
      const { result, took } = await world.timed(campaign);
      expect([result, took < 600]).toEqual([CLOSED, true]);
      near.commands.cut();
      await closing;
      await (await far.client.election("e").campaign()).resign();
    }),
  );

  test(
    "while a multi-lock confirms what it has taken: its call ends when its grace is over",
    scene(async (world) => {
      const [near, far] = world.processes(2);
      const held = await far.take("lock", { name: "b" });
      const both = outcomeOf(near.client.multiLock(["lock:a", "lock:b"]).lock());
      await world.pass(500);
      const silent = near.on("renew").sent(() => near.commands.freeze(60_000));
      await held.unlock();
      await silent;
      const closing = near.does(() => near.client.close({ grace: 500 }));
      const { result, took } = await world.timed(both);
      // It gives back what it has, and waits 500 ms for the answers.
      expect([result, took < 1_100]).toEqual([CLOSED, true]);
      near.commands.cut();
      await closing;
    }),
  );
});
