import { describe, expect, test } from "vitest";
import { heldBody } from "../../support/held-body.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneLease, SceneProcess, TakeOptions } from "./scene-process.ts";
import { BY_MESSAGE, inTurn, outcomeOf, warm } from "./steps.ts";

// Callers of one process at a semaphore share holds and a place in the queue. What each of them,
// and other processes, may rely on. A semaphore of these scenes has three permits.

const ALL = { units: 3 };
const TWO = { units: 2 };

/** `theirs` has all permits, and a first caller of `mine` waits in Redis for one. */
async function queueUp({ pass }: Scene, mine: SceneProcess, theirs: SceneProcess) {
  const all = await theirs.take("semaphore", ALL);
  const head = mine.take("semaphore");
  await pass(100);
  return { all, head };
}

/** Callers of `mine` that get one hold, because `theirs` had all permits when they came. */
async function share(
  world: Scene,
  mine: SceneProcess,
  theirs: SceneProcess,
  ...asked: readonly TakeOptions[]
): Promise<SceneLease[]> {
  const { redis } = world;
  const { all, head } = await queueUp(world, mine, theirs);
  const waiting = asked.map((options) => mine.take("semaphore", options));
  await all.unlock();
  const [first, ...leases] = await Promise.all([head, ...waiting]);
  await first.unlock();
  expect(redis.holds("sem:a")).toHaveLength(1);
  return leases;
}

/** The same for two callers with one permit each. */
async function two(
  world: Scene,
  mine: SceneProcess,
  theirs: SceneProcess,
  options: TakeOptions = {},
): Promise<[SceneLease, SceneLease]> {
  return (await share(world, mine, theirs, options, options)) as [SceneLease, SceneLease];
}

/**
 * `all` is given back, and one command asks for the callers that wait: `first`, one that leaves before
 * the answer, and those that `after` makes. The answer is read `late` ms after that.
 */
async function askForOneThatLeaves<T>(
  mine: SceneProcess,
  all: SceneLease,
  late: number,
  options: TakeOptions,
  after: () => T,
): Promise<{ first: Promise<SceneLease>; others: T }> {
  const enough = new AbortController();
  const first = mine.take("semaphore", options);
  const gone = outcomeOf(mine.take("semaphore", { ...options, signal: enough.signal }));
  const others = after();
  const asked = mine.on("acquire").executed(() => mine.commands.freezeReplies(late));
  await all.unlock();
  await asked;
  enough.abort();
  await gone;
  return { first, others };
}

/** Two callers of `mine` share a hold. The first one has asked for a confirmation, and ends by `leave`. */
async function shareConfirmed(world: Scene, mine: SceneProcess, theirs: SceneProcess) {
  const { all, head } = await queueUp(world, mine, theirs);
  const { run, isInside, leave } = heldBody();
  const permits = mine.client.semaphore("sem:a", { permits: 3 });
  const done = permits.withPermits(1, { lease: 20_000, confirm: true }, run);
  const other = mine.take("semaphore", { lease: 20_000 });
  await all.unlock();
  await isInside;
  return { done, leave, leases: [await head, await other] };
}

/** Notes the names of callers when they have their permits. They give them back at once. */
function order(): {
  readonly names: string[];
  note(who: string, taking: Promise<SceneLease>): Promise<void>;
} {
  const names: string[] = [];
  const note = async (who: string, taking: Promise<SceneLease>): Promise<void> => {
    const lease = await taking;
    names.push(who);
    await lease.unlock();
  };
  return { names, note };
}

describe("the place of a process in the queue", () => {
  test(
    "is given up when its callers have been served here",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      await warm(world, mine, theirs);
      const held = await mine.take("semaphore", ALL);
      const waiting = mine.take("semaphore", ALL);
      await world.pass(5);
      expect(world.redis.queue("sem:a")).toEqual([mine.number]);
      await held.unlock();
      const next = await waiting;
      await world.pass(5);
      expect(world.redis.queue("sem:a")).toEqual([]);
      await next.unlock();
    }),
  );

  test(
    "is kept for a caller that comes back in the turn in which the others have been served",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      await warm(world, mine, theirs);
      const held = await mine.take("semaphore", ALL);
      const next = mine.take("semaphore", ALL);
      await world.pass(5);
      const others = theirs.take("semaphore", ALL);
      await world.pass(5);
      const places = world.redis.places("sem:a");
      const unlocking = held.unlock();
      const back = mine.take("semaphore", ALL);
      await unlocking;
      await world.pass(2);
      expect(world.redis.places("sem:a")).toEqual(places);
      await inTurn(world, next, back, others);
    }),
  );

  test(
    "is taken anew for the next caller, which wants more, as soon as those before it were served here",
    scene(async (world) => {
      const [mine, theirs, third] = world.processes(3);
      await warm(world, mine, theirs);
      const others = [await theirs.take("semaphore"), await theirs.take("semaphore")];
      const held = await mine.take("semaphore");
      const small = mine.take("semaphore");
      await world.pass(2);
      const { names, note } = order();
      const all = [note("large", mine.take("semaphore", TWO))];
      await held.unlock();
      const lease = await small;
      await world.pass(5);
      all.push(note("third", third.take("semaphore")));
      await world.pass(5);
      for (const other of others) await other.unlock();
      await Promise.all(all);
      expect(names).toEqual(["large", "third"]);
      await lease.unlock();
    }),
  );

  test(
    "is taken anew when a caller leaves before its place is answered, and the next one wants less",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      await warm(world, mine, theirs);
      const others = await theirs.take("semaphore", TWO);
      const enough = new AbortController();
      const queued = mine.on("acquire").executed(() => mine.commands.freezeReplies(20));
      const large = outcomeOf(mine.take("semaphore", { ...ALL, signal: enough.signal }));
      const small = mine.take("semaphore");
      await queued;
      enough.abort();
      const { result, took } = await world.timed(small);
      expect(took).toBeLessThan(20 + BY_MESSAGE);
      await large;
      await result.unlock();
      await others.unlock();
    }),
  );

  test(
    "stays as it is when callers that share a hold leave it together beside one that waits",
    scene(async (world) => {
      const [mine, theirs, third] = world.processes(3);
      const [first, last] = await two(world, mine, theirs);
      const others = await theirs.take("semaphore");
      const { names, note } = order();
      const all = [note("mine", mine.take("semaphore", ALL))];
      await world.pass(5);
      all.push(note("third", third.take("semaphore", ALL)));
      await world.pass(5);
      const places = world.redis.places("sem:a");
      await Promise.all([first.unlock(), last.unlock()]);
      await world.pass(5);
      expect(world.redis.places("sem:a")).toEqual(places);
      await others.unlock();
      await Promise.all(all);
      expect(names).toEqual(["mine", "third"]);
    }),
  );
});

describe("a caller", () => {
  test(
    "that does not wait gets what another one has just left here together with what is free in Redis",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      const [first, last] = await two(world, mine, theirs);
      const unlocking = first.unlock();
      const both = await mine.tryTake("semaphore", TWO);
      expect(both?.held).toBe(true);
      await unlocking;
      await both?.unlock();
      await last.unlock();
    }),
  );

  test(
    "that comes while others wait here does not enter before them by what has just been left",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      const [first, last] = await two(world, mine, theirs);
      const { names, note } = order();
      const all = [note("large", mine.take("semaphore", ALL))];
      await world.pass(5);
      const unlocking = first.unlock();
      all.push(note("small", mine.take("semaphore")));
      await unlocking;
      await world.pass(5);
      expect(names).toEqual([]);
      await last.unlock();
      await Promise.all(all);
      expect(names).toEqual(["large", "small"]);
    }),
  );

  test(
    "gets no fewer permits than it wants when the one before it has left, which wanted fewer",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      await warm(world, mine, theirs);
      const enough = new AbortController();
      const asked = mine.on("acquire").executed(() => mine.commands.freezeReplies(20));
      const small = outcomeOf(mine.take("semaphore", { signal: enough.signal }));
      const large = mine.take("semaphore", ALL);
      await asked;
      enough.abort();
      const lease = await large;
      expect(await theirs.tryTake("semaphore")).toBeNull();
      await small;
      await lease.unlock();
    }),
  );

  test(
    "does not enter a hold of callers with a much shorter lease",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      const { all, head } = await queueUp(world, mine, theirs);
      const short = { lease: 2_000 };
      const { first, others: long } = await askForOneThatLeaves(mine, all, 20, short, () =>
        mine.take("semaphore", { lease: 60_000 }),
      );
      const leases = await Promise.all([head, first, long]);
      await world.pass(5_000);
      expect(leases.map(({ held }) => held)).toEqual([true, false, true]);
      for (const lease of leases) await lease.unlock().catch(() => {});
    }),
  );

  test(
    "that shares its hold with no other gives it back at once, although the event loop is blocked then",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      await warm(world, theirs, mine);
      const all = await mine.take("semaphore", ALL);
      const waiting = theirs.take("semaphore");
      await world.pass(10);
      const unlocking = mine.does(() => {
        const unlocked = all.unlock();
        mine.block(2_000);
        return unlocked;
      });
      const { result, took } = await world.timed(waiting);
      expect(took).toBeLessThan(BY_MESSAGE);
      await unlocking;
      await result.unlock();
    }),
  );

  test(
    "has the permit that one leaves which wants a confirmation, without waiting for Redis",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      const { done, leave, leases } = await shareConfirmed(world, mine, theirs);
      const waiting = mine.take("semaphore");
      await world.pass(5);
      mine.freeze(1_000);
      leave();
      const { result, took } = await world.timed(waiting);
      expect(took).toBeLessThan(BY_MESSAGE);
      await done;
      for (const lease of [result, ...leases]) await lease.unlock();
    }),
  );
});

describe("callers that share a hold", () => {
  test(
    "and some of which left before it came: others have their turn after 16 local hand-offs",
    scene(async (world) => {
      const [mine, theirs, third] = world.processes(3);
      await warm(world, third, theirs);
      const { all, head } = await queueUp(world, mine, theirs);
      const { first } = await askForOneThatLeaves(mine, all, 3, {}, () => null);
      const lease = await first;
      await (await head).unlock();
      const { names, note } = order();
      const waiting = [note("third", third.take("semaphore", ALL))];
      await world.pass(1);
      for (let i = 0; i < 20; i++) waiting.push(note("mine", mine.take("semaphore")));
      await lease.unlock();
      await Promise.all(waiting);
      expect(names.indexOf("third")).toBe(16);
    }),
  );

  test(
    "and whose number has become smaller meanwhile: what they do not use is free for others at once",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      const { all, head } = await queueUp(world, mine, theirs);
      const { first } = await askForOneThatLeaves(mine, all, 20, {}, () => null);
      const leases = await Promise.all([head, first]);
      await world.pass(2);
      const other = await theirs.tryTake("semaphore");
      expect(other?.held).toBe(true);
      for (const lease of [...leases, other]) await lease?.unlock();
    }),
  );

  test(
    "and leave it in one turn give it back by one command",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      const [first, last] = await two(world, mine, theirs);
      const { sent } = mine;
      await Promise.all([first.unlock(), last.unlock()]);
      expect(mine.sent - sent).toBe(1);
      expect(world.redis.holds("sem:a")).toEqual([]);
    }),
  );

  test(
    "and leave it together share the next one when they come back together, while another one stays",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      const { all, head } = await queueUp(world, mine, theirs);
      const waiting = [mine.take("semaphore"), mine.take("semaphore")];
      await all.unlock();
      const [stays, ...leases] = await Promise.all([head, ...waiting]);
      expect(world.redis.holds("sem:a")).toHaveLength(2);
      const back = await Promise.all(
        leases.map(async (lease) => {
          await lease.unlock();
          return mine.take("semaphore");
        }),
      );
      expect(world.redis.holds("sem:a")).toHaveLength(2);
      await stays.unlock();
      for (const lease of back) await lease.unlock();
    }),
  );

  test(
    "and of which one leaves in the turn in which the other one's time is over: release() resolves",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      const [first, last] = await two(world, mine, theirs, { lease: 20_000, maxHold: 2_000 });
      const lost = mine.heard("lost");
      await mine.does(() => {
        const unlocking = first.unlock();
        mine.block(2_500);
        expect(last.lease.signal.aborted).toBe(true);
        return unlocking;
      });
      expect(lost.map(({ error }) => error.reason)).toEqual(["expired"]);
      await (await theirs.take("semaphore", ALL)).unlock();
      await last.unlock().catch(() => {});
    }),
  );

  test(
    "and of which one leaves in the turn in which the loss is read: the signal of that one aborts, too",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      const [first, last] = await two(world, mine, theirs, { lease: 20_000 });
      const { signal } = last.lease;
      world.redis.drop("sem:a");
      const executed = mine.on("release").executed();
      const calls = [outcomeOf(first.unlock())];
      await executed;
      // The reply is read after 0.2 ms, before what is sent at the end of that turn.
      await world.pass(0.1995);
      calls.push(outcomeOf(last.unlock()));
      expect((await Promise.all(calls)).map((outcome) => outcome?.[1])).toEqual(["gone", "gone"]);
      expect(signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "gone" });
    }),
  );

  test(
    "and of which one leaves in the turn in which another caller takes its permit: release() resolves",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      const [first, last] = await two(world, mine, theirs);
      const unlocking = first.unlock();
      const next = await mine.take("semaphore");
      const { took } = await world.timed(unlocking);
      expect(took).toBe(0);
      await last.unlock();
      await next.unlock();
    }),
  );

  test(
    "and of which two leave in one turn, in which another caller takes one permit: release() is confirmed by Redis",
    scene(async (world) => {
      const both = world.processes(2);
      const [mine, theirs] = both.map(({ client }) => client.semaphore("sem:five", { permits: 5 }));
      const [one, other] = both;
      const all = await other.does(() => theirs?.acquire(5));
      const head = one.does(() => mine?.acquire());
      await world.pass(100);
      const waiting = one.does(() => Promise.all([mine?.acquire(), mine?.acquire(), mine?.acquire()]));
      await other.does(() => all?.release());
      const [first, second, last] = await waiting;
      const { took } = await world.timed(
        one.does(async () => {
          const released = Promise.all([first?.release(), second?.release()]);
          const next = await mine?.acquire();
          await released;
          await next?.release();
        }),
      );
      // Each of the two steps takes a round trip.
      expect(took).toBeGreaterThan(0.7);
      await one.does(async () => Promise.all([last?.release(), (await head)?.release()]));
    }),
  );

  test(
    "and come back in the turn in which they leave: others have their turn after 16 local hand-offs, and `acquire` tells of each",
    scene(async (world) => {
      const [mine, theirs, third] = world.processes(3);
      await warm(world, third, theirs);
      const [first, last] = await two(world, mine, theirs);
      const told = mine.heard("acquire");
      const { names, note } = order();
      const waiting = [note("third", third.take("semaphore", ALL))];
      await world.pass(5);
      await last.unlock();
      await world.pass(5);
      let lease = first;
      for (let i = 0; i < 20; i++) {
        void lease.unlock();
        lease = await mine.take("semaphore");
        names.push("mine");
      }
      await lease.unlock();
      await Promise.all(waiting);
      expect(names.indexOf("third")).toBe(16);
      expect(told.filter(({ passed }) => passed)).toHaveLength(16);
    }),
  );

  test(
    "and of which one leaves and finds it gone: the others learn it at once",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      const [first, last] = await two(world, mine, theirs);
      world.redis.drop("sem:a");
      expect(await outcomeOf(first.unlock())).toEqual(["LOCK_LOST", "gone"]);
      expect([last.held, last.lease.signal.aborted]).toEqual([false, true]);
      expect(await outcomeOf(last.unlock())).toEqual(["LOCK_LOST", "gone"]);
    }),
  );

  test(
    "and of which one leaves with a confirmation: its permit is free for others at once",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      const { done, leave, leases } = await shareConfirmed(world, mine, theirs);
      leave();
      await done;
      await world.pass(1);
      const next = await theirs.tryTake("semaphore");
      expect(next?.held).toBe(true);
      for (const lease of [...leases, next]) await lease?.unlock();
    }),
  );

  test.each([
    ["one leaves", 1],
    ["all leave", 2],
  ] as const)(
    "and of which %s while Redis refuses that: others have its permits when it does so no more",
    (_, leave) =>
      scene(async (world) => {
        const [mine, theirs] = world.processes(2);
        const leases = await two(world, mine, theirs, { lease: 20_000 });
        world.redis.refuse("LOADING");
        const outcomes = await Promise.all(leases.slice(0, leave).map((lease) => outcomeOf(lease.unlock())));
        expect(outcomes.map((outcome) => outcome?.[0])).toEqual(Array(leave).fill("LOCK_UNAVAILABLE"));
        world.redis.refuse(null);
        await world.pass(1_000);
        const next = await theirs.tryTake("semaphore", { units: 1 + leave });
        expect(next?.held).toBe(true);
        for (const lease of [...leases.slice(leave), next]) await lease?.unlock();
      })(),
  );

  test(
    "and of which one's release failed, and is due again while the last one's is sent anew: that one has lost nothing",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      const [first, last] = await two(world, mine, theirs, { lease: 20_000 });
      const lost = mine.heard("lost");
      world.redis.refuse("LOADING");
      expect((await outcomeOf(first.unlock()))?.[0]).toBe("LOCK_UNAVAILABLE");
      await mine.on("release").refused();
      world.redis.refuse(null);
      world.redis.flushScripts();
      world.delay(500);
      const unknown = mine.on("release").unknown(() => world.redis.learnScripts());
      const unlocking = last.unlock();
      await unknown;
      await unlocking;
      await world.pass(5_000);
      expect([lost, world.redis.holds("sem:a")]).toEqual([[], []]);
    }),
  );

  test(
    "and of which one found no hold, and then Redis refuses the end of it: both calls reject",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      const [first, last] = await two(world, mine, theirs, { lease: 20_000 });
      world.redis.drop("sem:a");
      mine.commands.freezeReplies(10);
      const found = mine.on("release").executed();
      const calls = [outcomeOf(first.unlock())];
      await found;
      world.redis.refuse("LOADING");
      const refused = mine.on("release").refused();
      calls.push(outcomeOf(last.unlock()));
      await refused;
      world.redis.refuse(null);
      const outcomes = await Promise.all(calls);
      expect(outcomes.map((outcome) => outcome?.[0])).toEqual(["LOCK_UNAVAILABLE", "LOCK_UNAVAILABLE"]);
    }),
  );

  test(
    "and whose last one's time ends it, by a command that comes twice: the others have lost nothing",
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      const [first, last] = await two(world, mine, theirs, { lease: 20_000, maxHold: 2_000 });
      const lost = mine.heard("lost");
      mine.commands.freezeReplies(5_000);
      const call = outcomeOf(first.unlock());
      await mine.on("leave").executed(() => mine.commands.cut());
      const again = [mine.on("release").executed(), mine.on("leave").executed()];
      expect(await call).toEqual(["LOCK_UNAVAILABLE", undefined]);
      await Promise.all(again);
      expect(lost.map(({ error }) => error.reason)).toEqual(["expired"]);
      await last.unlock().catch(() => {});
    }),
  );
});

test(
  "close() right after callers have left a shared hold ends when Redis has answered",
  scene(async (world) => {
    const [mine, theirs] = world.processes(2);
    const leases = await two(world, mine, theirs);
    mine.commands.freezeReplies(100);
    const unlocking = Promise.all(leases.map((lease) => lease.unlock()));
    await world.pass(1);
    const { took } = await world.timed(mine.client.close());
    expect(took).toBeGreaterThan(90);
    expect(took).toBeLessThan(100 + BY_MESSAGE);
    await unlocking;
  }),
);

test(
  "process.exit() beside a waiting caller: what exit handlers give back goes to other processes at once",
  scene(async (world) => {
    const [mine, theirs] = world.processes(2);
    await warm(world, theirs, mine);
    const [first] = await two(world, mine, theirs);
    const held = await mine.take("semaphore", { ...ALL, name: "b" });
    const next = theirs.take("semaphore", { ...ALL, name: "b" });
    await world.pass(2);
    void mine.take("semaphore", { ...ALL, name: "b" });
    await world.pass(2);
    // What was unlocked in this turn is sent by the exit handler of the package.
    const handler = mine.on("release").sent(() => void held.unlock());
    await mine.does(() => {
      void first.unlock();
      mine.exit();
    });
    const { result, took } = await world.timed(next);
    expect(took).toBeLessThan(BY_MESSAGE);
    await handler;
    await result.unlock();
  }),
);
