import { expect, test } from "vitest";
import { type Scene, scene } from "./scene.ts";
import { BY_MESSAGE, inTurn, L, outcomeOf, R, W } from "./steps.ts";

// docs/guarantees.md, "semaphore". A semaphore of these scenes has three permits.

const PERMITS = 3;

/** The numbers that Redis has given to the holds that there are. */
const numbers = ({ redis }: Scene): number[] =>
  [...redis.hash("holdfast:semaphore:{sem:a}").values()].flatMap((field) => {
    const [, number] = /^1p \d{13} \d+ (\d{16})/.exec(field) ?? [];
    return number === undefined ? [] : [Number(number)];
  });

test(
  "two processes give different numbers: the second is refused while the semaphore is in use",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const held = await one.take("semaphore", { units: 2 });
    const others = other.client.semaphore("sem:a", { permits: 5 });
    await expect(others.acquire()).rejects.toMatchObject({ code: "PERMITS_DIFFER" });
    expect(held.held).toBe(true);
    await held.unlock();
    await (await others.acquire()).release();
  }),
);

test.each([
  [5, 3],
  [3, 5],
])(
  "two callers of a process say %i and %i, and the first one leaves before its answer: the second is refused",
  (says, other) =>
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      const permits = (one: typeof mine, number: number) =>
        one.client.semaphore("sem:a", { permits: number });
      const held = await theirs.does(() => permits(theirs, says).acquire(says - 1));
      mine.commands.freezeReplies(100);
      const executed = mine.on("acquire").executed();
      const enough = new AbortController();
      const first = mine.does(() => permits(mine, says).acquire(1, { signal: enough.signal }));
      await executed;
      const second = outcomeOf(mine.does(() => permits(mine, other).acquire()));
      enough.abort("enough");
      await expect(first).rejects.toBe("enough");
      expect(await second).toEqual(["PERMITS_DIFFER", undefined]);
      await theirs.does(() => held.release());
    })(),
);

test(
  "setPermits(n): holders keep theirs, n counts for all, and waiting callers that want more are refused",
  scene(async (world) => {
    const [one, other, admin] = world.processes(3);
    const differs = other.heard("error");
    // A number that was set does not expire.
    world.shows(/holdfast:semaphore:\{sem:a\} has no end/);
    const held = await one.take("semaphore", { units: 3 });
    const waiting = world.timed(outcomeOf(other.take("semaphore", { units: 3 })));
    await world.pass(100);
    await admin.client.semaphore("sem:a").setPermits(2);
    const { result, took } = await waiting;
    expect(result?.[0]).toBe("PERMITS_DIFFER");
    expect(took).toBeLessThanOrEqual(R + 200);
    expect(held.held).toBe(true);
    await held.unlock();
    const two = await other.take("semaphore", { units: 2 });
    expect(await one.tryTake("semaphore")).toBeNull();
    await two.unlock();
    expect(differs.map(({ code }) => code)).toContain("SETTING_DIFFERS");
  }),
);

test(
  "callers of a process share a hold: each lease ends by itself, and others get unused permits at once",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const all = await other.take("semaphore", { units: PERMITS });
    const head = one.take("semaphore");
    await world.pass(100);
    const callers = [one.take("semaphore"), one.take("semaphore", { lease: 1_000 })];
    await all.unlock();
    const [first, long, short] = await Promise.all([head, ...callers]);
    const waiting = other.take("semaphore");
    await world.pass(500);
    expect([long?.held, short?.held]).toEqual([true, true]);
    await first?.unlock();
    await inTurn(world, waiting);
    const next = other.take("semaphore", { units: 2 });
    await world.pass(700);
    expect([long?.held, short?.held]).toEqual([true, false]);
    await inTurn(world, next);
    await long?.unlock();
    expect(await outcomeOf(short?.unlock() ?? Promise.resolve())).toEqual(["LOCK_LOST", "expired"]);
  }),
);

test(
  "a lost hold is lost for all callers that share it",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const all = await other.take("semaphore", { units: PERMITS });
    const head = one.take("semaphore");
    await world.pass(100);
    const callers = [one.take("semaphore"), one.take("semaphore")];
    await all.unlock();
    const leases = await Promise.all([head, ...callers]);
    world.redis.drop("sem:a");
    await world.pass(L / 3);
    for (const { lease } of leases) expect(lease.signal.reason).toMatchObject({ reason: "gone" });
    for (const lease of leases) await lease.unlock().catch(() => {});
  }),
);

test(
  "a caller that wants many permits is not overtaken",
  scene(async (world) => {
    const [one, other, third] = world.processes(3);
    const held = [await one.take("semaphore"), await one.take("semaphore")];
    const many = other.take("semaphore", { units: 3 });
    await world.pass(50);
    expect(await third.tryTake("semaphore")).toBeNull();
    const few = third.take("semaphore");
    await world.pass(50);
    expect(world.redis.holds("sem:a").length).toBeLessThanOrEqual(2);
    for (const lease of held) await lease.unlock();
    await inTurn(world, many, few);
  }),
);

test(
  "the holder's process crashes: the waiter has the permits within the rest of the hold and R",
  scene(async (world) => {
    const [holder, other] = world.processes(2);
    await holder.take("semaphore", { units: PERMITS });
    const waiting = other.take("semaphore");
    await world.pass(100);
    holder.crash();
    const rest = world.redis.left("sem:a");
    const { result, took } = await world.timed(waiting);
    expect(took).toBeGreaterThanOrEqual(rest - 1);
    expect(took).toBeLessThanOrEqual(rest + R);
    await result.unlock();
  }),
);

test(
  "the holder's process crashes, and no caller comes: nothing is left",
  scene(async (world) => {
    const [holder] = world.processes(1);
    await holder.take("semaphore", { units: 2 });
    holder.crash();
    await world.pass(L + 1);
    expect(world.redis.holds("sem:a")).toEqual([]);
    // The hash outlives the hold by a lease.
    await world.pass(L);
    expect(world.redis.keys("sem:a")).toEqual([]);
  }),
);

test(
  "the holder's process crashes, and no caller waits: the first that comes after its lease has the permits",
  scene(async (world) => {
    const [holder, other] = world.processes(2);
    await holder.take("semaphore", { units: PERMITS });
    const [before = 0] = numbers(world);
    holder.crash();
    await world.pass(world.redis.left("sem:a") - 5);
    expect(await other.tryTake("semaphore")).toBeNull();
    await world.pass(10);
    const lease = await other.tryTake("semaphore", { units: PERMITS });
    expect([lease?.held, world.redis.holders("sem:a")]).toEqual([true, [other.number]]);
    expect(numbers(world)[0]).toBeGreaterThan(before);
    await lease?.unlock();
  }),
);

test(
  "the holder's process is stopped for longer than the lease: it takes nothing from the next one",
  scene(async (world) => {
    const [holder, other] = world.processes(2);
    const held = await holder.take("semaphore", { units: PERMITS });
    const waiting = other.take("semaphore", { units: PERMITS });
    await world.pass(100);
    const rest = world.redis.left("sem:a");
    holder.pause(2 * L);
    const { result: next, took } = await world.timed(waiting);
    expect(took).toBeLessThanOrEqual(rest + R);
    await world.pass(2 * L);
    expect([held.held, held.lease.signal.aborted, next.held]).toEqual([false, true, true]);
    expect(await outcomeOf(held.unlock())).toEqual(["LOCK_LOST", "expired"]);
    expect(await holder.tryTake("semaphore")).toBeNull();
    await next.unlock();
  }),
);

test(
  "a waiting process is stopped: the next one waits for W and R, once",
  scene(async (world) => {
    const [holder, paused, other] = world.processes(3);
    const held = await holder.take("semaphore", { units: PERMITS });
    const first = paused.take("semaphore", { units: PERMITS });
    await world.pass(20);
    const second = other.take("semaphore", { units: PERMITS });
    await world.pass(20);
    paused.pause(30_000);
    await held.unlock();
    const { result, took } = await world.timed(second);
    expect(took).toBeGreaterThan(W - 1);
    expect(took).toBeLessThanOrEqual(W + R);
    await world.pass(30_000);
    // It has read a grant that was over, and queues again.
    expect([result.held, world.redis.holders("sem:a"), world.redis.queue("sem:a")]).toEqual([
      true,
      [other.number],
      [paused.number],
    ]);
    await result.unlock();
    await (await first).unlock();
  }),
);

test(
  "the reply to an acquire is lost, and it comes again: counted once",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const cut = one.on("acquire").executed(() => one.commands.cut());
    const taking = one.take("semaphore");
    await cut;
    const again = one.on("acquire").executed();
    const held = await taking;
    await again;
    const rest = await other.take("semaphore", { units: 2 });
    expect(await other.tryTake("semaphore")).toBeNull();
    await held.unlock();
    await rest.unlock();
  }),
);

test(
  "the reply to an acquire is lost, and the command fails: its permits come back",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    one.losesCommands("fail");
    const cut = one.on("acquire").executed(() => one.commands.cut());
    const call = outcomeOf(one.take("semaphore", { units: 2, wait: 500 }));
    await cut;
    const outcome = await call;
    await world.pass(1_000);
    if (outcome === null) throw new Error("the call had permits");
    expect(outcome[0]).toBe("LOCK_UNAVAILABLE");
    await inTurn(world, other.take("semaphore", { units: PERMITS }));
  }),
);

test(
  "the reply to an acquire that queues is lost, and the command fails: the place is given up, and another one taken",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    one.losesCommands("fail");
    const held = await other.take("semaphore", { units: PERMITS });
    // It tries, subscribes, and queues.
    const tried = one.on("acquire").answered();
    const waiting = one.take("semaphore");
    await tried;
    await one.on("acquire").executed(() => one.commands.cut());
    await world.pass(1);
    const [first] = world.redis.places("sem:a");
    await world.pass(500);
    const places = world.redis.places("sem:a");
    expect([first !== undefined, places.length, places[0] === first]).toEqual([true, 1, false]);
    await held.unlock();
    await inTurn(world, waiting);
  }),
);

test(
  "the reply to a release is lost, and it comes again: no loss, and the second copy takes no permits of the next ones",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const held = await one.take("semaphore", { units: PERMITS });
    const waiting = other.take("semaphore", { units: PERMITS });
    await world.pass(100);
    const cut = one.on("release").executed(() => one.commands.cut());
    const unlocking = held.unlock();
    await cut;
    const next = await waiting;
    await one.on("release").executed();
    await unlocking;
    expect(next.held).toBe(true);
    expect(await one.tryTake("semaphore")).toBeNull();
    await next.unlock();
  }),
);

test(
  "the reply to a release is lost, and the command fails: release() rejects, and the next one has the permits",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    one.losesCommands("fail");
    const held = await one.take("semaphore", { units: PERMITS });
    const waiting = other.take("semaphore", { units: PERMITS });
    await world.pass(100);
    const cut = one.on("release").executed(() => one.commands.cut());
    const unlocking = outcomeOf(held.unlock());
    await cut;
    const { result: next, took } = await world.timed(waiting);
    expect(took).toBeLessThan(BY_MESSAGE);
    expect(await unlocking).toEqual(["LOCK_UNAVAILABLE", undefined]);
    // What takes the lost release back.
    await one.on("leave").executed();
    await world.pass(1);
    expect([held.held, next.held, await one.tryTake("semaphore")]).toEqual([false, true, null]);
    await next.unlock();
  }),
);

test(
  "Redis is away for less than the lease: holders keep permits, waiters their places",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const held = await one.take("semaphore", { units: PERMITS });
    const waiting = other.take("semaphore");
    await world.pass(100);
    world.redis.restart(10_000);
    await world.pass(13_000);
    expect(held.held).toBe(true);
    await held.unlock();
    const { result, took } = await world.timed(waiting);
    expect(took).toBeLessThanOrEqual(R);
    await result.unlock();
  }),
);

test(
  "a process cannot reach Redis for less than its lease: it keeps its permits, its place and its turn",
  scene(async (world) => {
    const [one, other, third] = world.processes(3);
    const held = await one.take("semaphore", { lease: 5_000 });
    const rest = await other.take("semaphore", { units: 2 });
    const first = one.take("semaphore", { units: 2 });
    await world.pass(20);
    const last = third.take("semaphore", { units: 2 });
    await world.pass(20);
    const places = world.redis.places("sem:a");
    one.cutOff(500);
    await world.pass(1_000);
    expect([held.held, world.redis.places("sem:a")]).toEqual([true, places]);
    await rest.unlock();
    await inTurn(world, first, last);
    await held.unlock();
  }),
);

test(
  "a process cannot reach Redis for longer than its lease: it knows before another one has its permits, and queues again",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    one.heard("error");
    const held = await one.take("semaphore", { units: PERMITS });
    const blocked = one.take("semaphore");
    await world.pass(20);
    const waiting = other.take("semaphore", { units: 2 });
    await world.pass(100);
    const rest = world.redis.left("sem:a");
    const { signal } = held.lease;
    const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    one.cutOff(2 * L);
    const [lost, next] = await Promise.all([world.timed(aborted), world.timed(waiting)]);
    expect(lost.took).toBeLessThan(rest);
    expect(next.took).toBeLessThanOrEqual(rest + R);
    expect(await outcomeOf(held.unlock())).toEqual(["LOCK_LOST", "expired"]);
    await world.pass(2 * L);
    // It has queued again.
    await (await blocked).unlock();
    await next.result.unlock();
  }),
);

test.each(["DEL", "FLUSHALL"] as const)(
  "%s: holders notice at their next renewal, and waiters have what there is, and not more",
  (how) =>
    scene(async (world) => {
      const [one, ...others] = world.processes(5);
      const held = await one.take("semaphore", { units: PERMITS });
      const before = Math.max(...numbers(world));
      const calls = others.map((other) => other.take("semaphore"));
      await world.pass(100);
      world.shows(/two holders of sem:a/);
      if (how === "DEL") world.redis.drop("sem:a");
      else world.redis.dropAll();
      const given = new Set<number>();
      let [inside, most] = [0, 0];
      const turns = calls.map(async (call) => {
        const lease = await call;
        most = Math.max(most, ++inside);
        for (const number of numbers(world)) given.add(number);
        await world.pass(L / 2);
        inside--;
        await lease.unlock();
      });
      await Promise.all(turns);
      expect(held.lease.signal.reason).toMatchObject({ reason: "gone" });
      expect([most, given.size, Math.min(...given) > before]).toEqual([PERMITS, 4, true]);
      await held.unlock().catch(() => {});
    })(),
);

test(
  "Redis loses the key: until the next renewal both believe it, and waiters queue again",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const held = await one.take("semaphore", { units: PERMITS });
    const waiting = other.take("semaphore", { units: 2 });
    await world.pass(100);
    world.redis.dropAll();
    world.shows(/two holders of sem:a/);
    const { result: next, took } = await world.timed(waiting);
    expect(took).toBeLessThanOrEqual(R);
    await world.pass(L / 3);
    expect(held.lease.signal.reason).toMatchObject({ reason: "gone" });
    await held.unlock().catch(() => {});
    await next.unlock();
  }),
);

test(
  "the server's clock goes an hour back: the holder goes on, and hands its permits over by message",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const held = await one.take("semaphore", { units: PERMITS });
    const waiting = other.take("semaphore");
    await world.pass(100);
    const before = Math.max(...numbers(world));
    world.redis.setBack(3_600_000);
    await world.pass(2 * L);
    expect(held.held).toBe(true);
    await held.unlock();
    const { result: next, took } = await world.timed(waiting);
    expect(took).toBeLessThan(BY_MESSAGE);
    expect(Math.max(...numbers(world))).toBeGreaterThan(before);
    await next.unlock();
  }),
);

test(
  "the server's clock goes an hour back, and the holder crashes: its permits are taken for that hour",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    await one.take("semaphore", { units: PERMITS });
    const waiting = other.take("semaphore");
    await world.pass(100);
    world.redis.setBack(3_600_000);
    one.crash();
    const { result, took } = await world.timed(waiting);
    expect(took).toBeGreaterThan(3_600_000);
    expect(took).toBeLessThan(3_600_000 + L + R);
    await result.unlock();
  }),
);

test(
  "the server's clock goes an hour back, and the holder crashes: forceUnlock() frees its permits",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    await one.take("semaphore", { units: 2 });
    const waiting = other.take("semaphore", { units: 2 });
    await world.pass(100);
    world.redis.setBack(3_600_000);
    one.crash();
    await world.pass(2 * L);
    expect(world.redis.left("sem:a")).toBeGreaterThan(3_500_000);
    expect(await other.client.semaphore("sem:a", { permits: PERMITS }).forceUnlock()).toBe(1);
    await inTurn(world, waiting);
  }),
);

test(
  "the server's clock jumps an hour forward: `gone` at the next renewal, and the waiter has them at a re-check",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const held = await one.take("semaphore", { units: PERMITS });
    const waiting = other.take("semaphore");
    await world.pass(100);
    const before = Math.max(...numbers(world));
    world.redis.setBack(-3_600_000);
    world.shows(/two holders of sem:a|believes that it holds it/);
    const { result: next, took } = await world.timed(waiting);
    expect(took).toBeLessThanOrEqual(R);
    expect(Math.max(...numbers(world))).toBeGreaterThan(before);
    await world.pass(L / 3);
    expect(held.lease.signal.reason).toMatchObject({ reason: "gone" });
    await held.unlock().catch(() => {});
    await next.unlock();
  }),
);

test(
  "returned permits go to the next caller of the process, up to 16 times within 25 ms, then to the next process",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    let local = 0;
    let isOver = false;
    const callers = Array.from({ length: 6 }, async () => {
      while (!isOver) {
        const lease = await one.take("semaphore");
        if (!isOver) local++;
        await world.pass(1);
        await lease.unlock();
      }
    });
    await world.pass(100);
    local = 0;
    const { result, took } = await world.timed(other.take("semaphore"));
    isOver = true;
    expect(took).toBeLessThan(100);
    await result.unlock();
    await Promise.all(callers);
    expect(local).toBeGreaterThan(0);
  }),
);

test(
  "no failure: permits go to the next process by one message",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const held = await one.take("fair semaphore", { units: PERMITS });
    const waiting = other.take("fair semaphore", { units: 2 });
    await world.pass(100);
    await held.unlock();
    const { result, took } = await world.timed(waiting);
    expect(took).toBeLessThan(BY_MESSAGE);
    await result.unlock();
  }),
);
