import { describe, expect, test } from "vitest";
import { EPOCH } from "../simulated-process.ts";
import { failure, got, Job, KEEP, warm } from "./results.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, L, R } from "./steps.ts";

// docs/guarantees.md: results that callers share.

test(
  "first calls in two processes at once: one body, one value",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    const job = new Job();
    const all = await Promise.all([job.call(one), job.call(two), job.call(two)]);
    expect(all.map(({ value }) => value)).toEqual([1, 1, 1]);
    expect(all.filter(({ ran }) => ran)).toHaveLength(1);
    expect(new Set(all.map(({ token, at }) => `${token} ${at}`)).size).toBe(1);
    expect(await job.call(two)).toMatchObject({ value: 1, ran: false });
    expect(job.runs).toBe(1);
  }),
);

test("the result is stored between a caller's answer that it is held and its queueing", async () => {
  for (let ms = 0; ms < 3; ms += 0.1)
    await scene(async (world) => {
      const [one, two] = world.processes(2);
      const job = new Job();
      const first = job.call(one, 20 + ms, { keep: 0 });
      await world.pass(20);
      const second = job.call(two, 20, { keep: 0 });
      // One that came after the end runs.
      expect([1, 2]).toContain(await got(second));
      expect(await got(first)).toBe(1);
      expect(job.most).toBe(1);
    })();
});

test(
  "the body throws, and three processes wait: one after another runs until one succeeds",
  scene(async (world) => {
    const all = world.processes(4);
    await warm(world, ...all);
    const [one, two, three, four] = all;
    const job = new Job();
    const calls = [job.call(one, 20, {}, true)];
    for (const [process, fails] of [
      [two, true],
      [three, false],
      [four, false],
    ] as const) {
      await world.pass(2);
      calls.push(job.call(process, 20, {}, fails));
    }
    const ended = await Promise.all(calls.map(failure));
    expect(ended.slice(0, 2).map((error) => (error as Error).message)).toEqual([
      "run 1 has failed",
      "run 2 has failed",
    ]);
    expect(ended.slice(2)).toMatchObject([{ value: 3 }, { value: 3 }]);
    expect([job.runs, job.most]).toEqual([3, 1]);
  }),
);

test(
  "the answer to the command that stores it is lost, and it is sent again: it is stored once",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    await warm(world, one, two);
    const job = new Job();
    const lost = one.on("finish").executed(() => one.commands.cut({ back: 300 }));
    const first = job.call(one, 20, { keep: 5_000 });
    await world.pass(5);
    const second = await job.call(two);
    await lost;
    const { token, at, ran } = await first;
    expect([ran, token, at]).toEqual([true, second.token, second.at]);
    const { remaining = 0 } = (await two.does(() => two.client.remembered("x"))) ?? {};
    expect(remaining).toBeGreaterThan(4_000);
    expect(remaining).toBeLessThan(5_000 - 250);
    expect(job.runs).toBe(1);
  }),
);

test(
  "Redis is away at the end of the body, for longer than the lease: the result is stored when it is back",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    await warm(world, one, two);
    const job = new Job();
    const away = one.on("finish").sent(() => one.commands.cut({ back: 40_000 }));
    expect(await got(job.call(one, 20, { lease: 1_000 }))).toBe(1);
    await away;
    await world.pass(45_000);
    expect(await got(job.call(two))).toBe(1);
    expect(job.runs).toBe(1);
  }),
);

describe("a run that was paused for longer than its lease", () => {
  /** The first one's body ends after a pause in which the next one begins. */
  async function paused(world: Scene, ms: number, fails = false) {
    const [one, two, three] = world.processes(3);
    await warm(world, one, two, three);
    const job = new Job();
    const old = job.call(one, 10);
    await world.pass(5);
    const next = job.call(two, ms, {}, fails);
    await world.pass(2);
    one.pause(L + 500);
    return { job, old, next, one, two, three };
  }

  test(
    "and ends after the next one has stored: it is refused, and the others have the newer value",
    scene(async (world) => {
      const { job, old, next, three } = await paused(world, 50);
      expect(await got(next)).toBe(2);
      expect(await failure(old)).toMatchObject({ code: "LOCK_LOST" });
      expect(await got(job.call(three))).toBe(2);
      expect([job.runs, job.most]).toEqual([2, 1]);
    }),
  );

  test(
    "and ends while the next one runs: new callers have its value until the next one's is there",
    scene(async (world) => {
      const { job, old, next, one, three } = await paused(world, 5_000);
      const waiting = world.pass(L + 100).then(() => job.call(three));
      expect(await failure(old)).toMatchObject({ code: "LOCK_LOST" });
      await world.pass(10);
      expect(await got(job.call(one))).toBe(1);
      expect(await got(next)).toBe(2);
      expect(await got(waiting)).toBe(2);
      expect(await got(job.call(three))).toBe(2);
      expect([job.runs, job.most]).toEqual([2, 1]);
    }),
  );

  test(
    "and ends after the next one has thrown: its value is stored, and the next waiter finds it",
    scene(async (world) => {
      const { job, old, next, three } = await paused(world, 50, true);
      expect(await failure(next)).toMatchObject({ message: "run 2 has failed" });
      expect(await failure(old)).toMatchObject({ code: "LOCK_LOST" });
      await world.pass(10);
      expect(await got(job.call(three))).toBe(1);
      expect(job.runs).toBe(2);
    }),
  );
});

test.each([
  ["forget()", KEEP, 20_000, (one: SceneProcess) => one.does(() => one.client.forget("x"))],
  ["its time", 10, 20_000, () => null],
  ["its time for being late", 10, 70_000, () => null],
] as const)(
  "a copy of the command that stores it arrives after %s: nothing is stored",
  (_, keep, copies, ends) =>
    scene(async (world) => {
      const [one, two] = world.processes(2);
      await warm(world, one, two);
      const job = new Job();
      const cut = one.on("finish").sent(() => one.commands.cut({ copies, back: 20 }));
      await job.call(one, 20, { keep });
      await cut;
      await ends(two);
      await world.pass(16_000);
      expect(await two.does(() => two.client.remembered("x"))).toBeNull();
      await one.on("finish").executed();
      expect(await two.does(() => two.client.remembered("x"))).toBeNull();
      expect(await got(job.call(two))).toBe(2);
    })(),
);

test(
  "the message is lost, and the result is for waiting callers only: a re-check finds it",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    await warm(world, one, two);
    const job = new Job();
    const first = job.call(one, 20, { keep: 0 });
    await world.pass(5);
    const second = job.call(two, 20, { keep: 0 });
    await world.pass(5);
    two.messages.freezeReplies(10_000);
    const { took } = await world.timed(Promise.all([first, second]));
    expect(took).toBeLessThan(R + 2 * BY_MESSAGE);
    expect([(await second).value, job.runs]).toEqual([1, 1]);
  }),
);

test.each([0, KEEP])(
  "callers of the runner's own process have its value without a command, with keep: %i",
  (keep) =>
    scene(async (world) => {
      const [one, two] = world.processes(2);
      await warm(world, one, two);
      const job = new Job();
      const calls = [job.call(one, 20, { keep })];
      await world.pass(5);
      for (let i = 0; i < 50; i++) calls.push(job.call(one, 20, { keep }));
      const before = one.sent;
      expect(await Promise.all(calls.map(got))).toEqual(calls.map(() => 1));
      expect([job.runs, one.sent - before]).toEqual([1, 1]);
    })(),
);

test(
  "1 000 callers in 16 processes: a run is two commands, and each other process tries, and reads the result once",
  scene(async (world) => {
    const all = world.processes(16);
    await warm(world, ...all);
    const job = new Job();
    const before = all.map(({ sent }) => sent);
    const calls = Array.from({ length: 1_000 }, (_, i) => job.call(all[i % 16] as SceneProcess));
    const { took } = await world.timed(Promise.all(calls));
    expect([...new Set(await Promise.all(calls.map(got)))]).toEqual([1]);
    expect(all.map(({ sent }, i) => sent - (before[i] ?? 0)).sort()).toEqual(Array(16).fill(2));
    expect(took).toBeLessThan(20 + 2 * BY_MESSAGE);
  }),
);

test(
  "replicas are slow: callers that wait have the result before they have it, also in its own process",
  scene(async (world) => {
    const [one, two] = world.processes(2, { replicas: 1 });
    for (const process of [one, two]) process.hasReplicas();
    await warm(world, one, two);
    const job = new Job();
    const first = world.timed(job.call(one, 20));
    await world.pass(10);
    const others = [job.call(one), job.call(two)];
    one.hasReplicas(1_000);
    const { took } = await world.timed(Promise.all(others));
    expect([(await job.call(one, 20, { wait: 0 })).value, took]).toEqual([1, expect.closeTo(10, -1)]);
    expect((await first).took).toBeGreaterThan(1_000);
  }),
);

test(
  "the message of its grant is read while the result of a run waits for a connection: no other body runs",
  scene(async (world) => {
    const [one, two, three] = world.processes(3, { replicas: 1 });
    for (const process of [one, two, three]) process.hasReplicas();
    await warm(world, one, two, three);
    const job = new Job();
    const failed = failure(job.call(one, 50, {}, true));
    await world.pass(5);
    const second = two.does(() =>
      two.client.remember("x", { keep: KEEP }, async () => {
        two.hasReplicas(1_000);
        two.messages.freezeReplies(300);
        void two.client.lock("y").lock();
        await two.sleep(50);
        return "of the second";
      }),
    );
    await world.pass(5);
    const third = job.call(three);
    two.messages.freezeReplies(R + 100);
    await failed;
    expect([await got(second), await got(third), job.runs]).toEqual(["of the second", "of the second", 1]);
  }),
);

// One script tells so many; the next waiter is granted the lock, and tells the next ones.
const TOLD = 256;

test.each([
  ["stands still", (one: SceneProcess) => one.pause(5_000)],
  ["receives no message", (one: SceneProcess) => one.messages.freezeReplies(5_000)],
] as const)(
  "more processes wait than one script tells, and the one that is granted then %s: no other body runs",
  (_, fault) =>
    scene(async (world) => {
      const all: SceneProcess[] = world.processes(TOLD + 8);
      const first = all.shift() as SceneProcess;
      const job = new Job();
      const running = job.call(first, 3_000, { keep: 0 });
      await world.pass(5);
      const calls: Promise<unknown>[] = [];
      for (const one of all) {
        calls.push(got(job.call(one, 20, { keep: 0 })));
        await world.pass(2);
      }
      const granted = all[TOLD] as SceneProcess;
      const since = world.now();
      void first.on("finish").executed(() => fault(granted));
      await running;
      expect(await Promise.all(calls)).toEqual(calls.map(() => 1));
      expect(world.now() - since).toBeLessThan(3_000 + 5_000 + R);
      expect(job.runs).toBe(1);
    })(),
);

test(
  "a place has waited for a run, and a caller comes there after its end: that one runs",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    await warm(world, one, two);
    const job = new Job();
    const first = job.call(one, 20, { keep: 0 });
    await world.pass(5);
    const waiting = got(job.call(two, 20, { keep: 0 }));
    await world.pass(5);
    two.messages.freezeReplies(10_000);
    await first;
    await world.pass(100);
    const before = two.sent;
    const newcomer = got(job.call(two, 20, { keep: 0 }));
    expect(await waiting).toBe(1);
    expect(await newcomer).toBe(2);
    expect(two.sent - before).toBeLessThan(10);
  }),
);

test.each([
  ["goes on waiting", Number.POSITIVE_INFINITY],
  ["stops to wait", 40],
])("a caller comes to a place that waits for a run, whose first caller %s: it has waited too", (_, wait) =>
  scene(async (world) => {
    const [one, two] = world.processes(2);
    await warm(world, one, two);
    const job = new Job();
    const calls = [job.call(one, 100, { keep: 0 })];
    await world.pass(5);
    const before = failure(job.call(two, 20, { keep: 0, wait }));
    await world.pass(20);
    calls.push(job.call(two, 20, { keep: 0 }));
    expect(await Promise.all(calls.map(got))).toEqual([1, 1]);
    await before;
    expect(job.runs).toBe(1);
  })(),
);

test(
  "a run is lost and its body goes on, and a newer result ends: a caller that comes to its process after that runs",
  scene(async (world) => {
    const [one, two, three] = world.processes(3);
    await warm(world, one, two, three);
    const job = new Job();
    const old = failure(job.call(one, L + 2_000, { keep: 0 }));
    await world.pass(5);
    one.pause(L + 500);
    expect(await got(job.call(two, 10, { keep: 0 }))).toBe(2);
    const third = failure(job.call(three, 3_000, { keep: 0 }, true));
    await world.pass(1_000);
    const first = got(job.call(one, 20, { keep: 0 }));
    await world.pass(100);
    const newcomer = got(job.call(one, 20, { keep: 0 }));
    expect(await old).toMatchObject({ code: "LOCK_LOST" });
    await third;
    expect(await Promise.all([first, newcomer])).toEqual([4, 4]);
  }),
);

test(
  "a caller joins one of its process in the queue while a run is under way: the result is for it, after keep too",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    await warm(world, one, two);
    const job = new Job();
    const calls = [job.call(one, 1_000, { keep: 0 })];
    for (const ms of [300, 300, 390]) {
      await world.pass(ms);
      calls.push(job.call(two, 20, { keep: 0 }));
    }
    expect(await Promise.all(calls.map(got))).toEqual([1, 1, 1, 1]);
  }),
);

test(
  "the run of a process was lost, and another one has run: callers there get that result, after keep too",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    await warm(world, one, two);
    const job = new Job();
    const old = failure(job.call(one, 10, { keep: 0 }));
    await world.pass(2);
    const waiting = got(job.call(one, 10, { keep: 0 }));
    const next = got(job.call(two, 50, { keep: 0 }));
    await world.pass(2);
    one.pause(L + 2_500);
    expect(await next).toBe(2);
    expect(await old).toMatchObject({ code: "LOCK_LOST" });
    expect(await waiting).toBe(2);
  }),
);

test(
  "a caller has waited for two runs: the first one's late result is for it",
  scene(async (world) => {
    const [one, two, three] = world.processes(3);
    await warm(world, one, two, three);
    const job = new Job();
    const old = failure(job.call(one, 10, { keep: 0 }));
    await world.pass(5);
    const next = failure(job.call(two, 9_000, { keep: 0 }, true));
    await world.pass(2);
    const waiting = got(job.call(three, 10, { keep: 0 }));
    await world.pass(1);
    one.pause(L + 6_500);
    // Its place is lost while the second one runs, and it queues again.
    await world.until(() => job.runs === 2);
    world.redis.dropKey("holdfast:remember:{x}:queue");
    const later = got(job.call(three, 10, { keep: 0 }));
    await three.on("take").executed();
    // And once more, when both of its callers have seen a run.
    await world.pass(5);
    world.redis.dropKey("holdfast:remember:{x}:queue");
    await three.on("take").executed();
    expect(await old).toMatchObject({ code: "LOCK_LOST" });
    expect(await next).toMatchObject({ message: "run 2 has failed" });
    expect(await waiting).toBe(1);
    // One that came after the end of the first one's hold has only waited for the second one.
    expect(await later).toBe(3);
  }),
);

test(
  "a late copy of a command that has named an earlier run does not end the run of its hold",
  scene(async (world) => {
    const [one, two, three] = world.processes(3);
    await warm(world, one, two, three);
    const job = new Job();
    const old = failure(job.call(one, 1_600, { keep: 0, lease: 1_000 }));
    await world.pass(5);
    const waiting = got(job.call(one, 5_000, { keep: 0 }));
    const next = failure(job.call(two, 2_500, { keep: 0 }, true));
    await world.pass(5);
    // The old run is lost, and brings its result while the next one runs, whose body throws.
    const copied = one.on("take").sent(() => one.commands.cut({ copies: 3_500, back: 20 }));
    one.pause(1_500);
    await copied;
    await world.pass(100);
    const last = got(job.call(three, 20, { keep: 0 }));
    expect(await old).toMatchObject({ code: "LOCK_LOST" });
    expect(await next).toMatchObject({ message: "run 2 has failed" });
    expect([await waiting, await last, job.most]).toEqual([3, 3, 1]);
  }),
);

// A newer result has come and gone by then, and Redis has forgotten which was the last one.
test(
  "a renewal is answered after the run was lost, about a late copy of its first command: its result comes too late",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    await warm(world, one, two);
    const job = new Job();
    const copied = one.on("take").sent(() => one.commands.cut({ copies: 3_000, back: 20 }));
    const old = failure(job.call(one, 59_900, { lease: 1_000 }));
    await copied;
    // The process stands still too: it reads the answer before its timers ring.
    const renewal = one.on("renew").executed();
    await one.on("renew").sent(() => {
      one.commands.freeze(3_200);
      one.pause(3_400);
    });
    const next = await job.call(two, 20, { lease: 1_000, keep: 0 });
    expect(next.value).toBe(2);
    await renewal;
    void one.on("finish").sent(() => one.commands.freeze(2_000));
    expect(await old).toMatchObject({ code: "LOCK_LOST" });
    await world.pass(2_000);
    expect(await two.does(() => two.client.remembered("x"))).toBeNull();
  }),
);

test(
  "the server's clock is in 1970: a result is there all the same",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    world.redis.setBack(EPOCH - 50_000);
    const job = new Job();
    const first = job.call(one);
    await world.pass(5);
    expect(await Promise.all([first, job.call(two)].map(got))).toEqual([1, 1]);
    expect(await got(job.call(two))).toBe(1);
    expect(await two.does(() => two.client.forget("x"))).toBe(true);
  }),
);

describe("stopRun()", () => {
  /** A run that ends when its signal aborts, and a process that waits for it. */
  async function stoppable(world: Scene) {
    const [one, two, admin] = world.processes(3);
    await warm(world, one, two);
    const old = failure(
      one.does(() =>
        one.client.remember(
          "x",
          { keep: KEEP },
          ({ signal }) =>
            new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
        ),
      ),
    );
    await world.pass(5);
    const job = new Job();
    const next = job.call(two);
    await world.pass(5);
    const stop = (options?: Parameters<typeof admin.client.stopRun>[1]) =>
      admin.does(() => admin.client.stopRun("x", options));
    return { one, admin, old, next, job, stop };
  }

  test(
    "the first waiter runs at once, and the signal of the old runner aborts",
    scene(async (world) => {
      const { old, next, job, stop } = await stoppable(world);
      const { result, took } = await world.timed(stop({ label: "alice" }).then(() => next));
      expect(took).toBeLessThan(20 + 3 * BY_MESSAGE);
      expect([result.value, result.ran, job.runs]).toEqual([1, true, 1]);
      expect(await old).toMatchObject({
        code: "LOCK_LOST",
        reason: "revoked",
        by: "alice",
        message: expect.stringContaining("stopRun() ended it"),
      });
    }),
  );

  test(
    "while the runner receives no messages: it notices at its next renewal",
    scene(async (world) => {
      const { one, old, next, stop } = await stoppable(world);
      one.messages.freezeReplies(60_000);
      await stop();
      expect((await next).value).toBe(1);
      const { result, took } = await world.timed(old);
      expect(took).toBeLessThan(L / 3 + BY_MESSAGE);
      expect(result).toMatchObject({ code: "LOCK_LOST" });
    }),
  );

  test(
    "ends only the run that is meant, and none is none",
    scene(async (world) => {
      const { admin, old, next, stop } = await stoppable(world);
      const seen = await admin.does(() => admin.client.list({ kind: "remember" }).next());
      const { id = "", token = 0 } = seen.value?.holder ?? {};
      expect(await stop({ token: Number(token) + 1 })).toBe(false);
      expect(await stop({ holder: admin.client.id })).toBe(false);
      expect(await stop({ holder: id, token: Number(token) })).toBe(true);
      await Promise.all([old, next]);
      expect(await stop()).toBe(false);
    }),
  );

  test(
    "a stopped run that returns all the same has lost, and its value gives way to the next one's",
    scene(async (world) => {
      const [one, two, three] = world.processes(3);
      await warm(world, one, two, three);
      const job = new Job();
      const old = failure(job.call(one, 50));
      await world.pass(5);
      const next = job.call(two, 500);
      await world.pass(5);
      expect(await three.does(() => three.client.stopRun("x"))).toBe(true);
      expect(await old).toMatchObject({ code: "LOCK_LOST", reason: "revoked" });
      expect(await got(next)).toBe(2);
      expect(await got(job.call(three))).toBe(2);
      expect([job.runs, job.most]).toEqual([2, 1]);
    }),
  );
});

test(
  "runs, and calls that get the result of another run, have events of their clients",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    await warm(world, one, two);
    const told: unknown[][] = [];
    for (const { client, name } of [one, two]) {
      const tell = (...what: unknown[]) => void told.push([name, ...what]);
      client.on("wait", ({ kind, heldBy }) => tell("wait", kind, heldBy));
      client.on("acquire", ({ kind, token, passed }) => tell("acquire", kind, Number(token) > 0, passed));
      client.on("release", ({ kind, heldFor }) => tell("release", kind, heldFor >= 20));
      client.on("giveup", ({ kind, why }) => tell("giveup", kind, why));
    }
    const job = new Job();
    const running = job.call(one);
    await world.pass(5);
    await Promise.all([running, job.call(two)]);
    await job.call(one);
    expect(await failure(job.call(one, 0, { fingerprint: "other" }))).toMatchObject({
      code: "FINGERPRINT_DIFFERS",
    });
    const [first, second] = [one.name, two.name];
    expect(told.filter(([name]) => name === first)).toEqual([
      [first, "acquire", "remember", true, false],
      [first, "release", "remember", true],
      [first, "giveup", "remember", "served"],
      [first, "giveup", "remember", "refused"],
    ]);
    expect(told.filter(([name]) => name === second)).toEqual([
      [second, "wait", "remember", "unknown"],
      [second, "giveup", "remember", "served"],
    ]);
  }),
);

test(
  "a body that calls remember() with its own name waits for itself, and its client warns of that",
  scene(async (world) => {
    const [one] = world.processes(1);
    const waits = one.heard("wait");
    let inner: Promise<{ readonly value: unknown }> | null = null;
    await one.does(() =>
      one.client.remember("x", { keep: KEEP }, async () => {
        inner = one.client.remember("x", { keep: KEEP }, () => 1);
        await one.sleep(5_000 + 1_000);
        expect(waits.at(-1)).toMatchObject({ kind: "remember", heldBy: "this scope" });
        expect(one.warnings).toEqual([expect.stringMatching(/^A call at /)]);
        return 2;
      }),
    );
    expect(await inner).toMatchObject({ value: 2, ran: false });
  }),
);

test(
  "a long run warns of no other caller of its process",
  scene(async (world) => {
    const [one] = world.processes(1);
    const job = new Job();
    await Promise.all([job.call(one, 3 * L), job.call(one), world.pass(100).then(() => job.call(one))]);
    expect([job.runs, one.warnings]).toEqual([1, []]);
  }),
);

test(
  "a run waits for a lock whose holder waits for its result: a deadlock is reported",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    const deadlocks = two.heard("deadlock");
    const lock = (of: SceneProcess) => of.client.lock("y");
    const inside = two.does(() =>
      lock(two).withLock(async () => {
        await two.sleep(100);
        return failure(two.client.remember("x", { keep: KEEP, wait: 20_000 }, () => 2));
      }),
    );
    await world.pass(50);
    const run = one.does(() =>
      one.client.remember("x", { keep: KEEP }, () => lock(one).withLock(async () => "done")),
    );
    expect(await inside).toMatchObject({ code: "LOCK_TIMEOUT" });
    expect(await run).toMatchObject({ value: "done", ran: true });
    expect(deadlocks[0]).toMatchObject({
      name: "x",
      kind: "remember",
      cycle: [
        { name: "x", kind: "remember" },
        { name: "y", kind: "lock" },
      ],
    });
  }),
);

test(
  "such a call with a `wait` is refused when it is over, and names its own process",
  scene(async (world) => {
    const [one] = world.processes(1);
    const { value } = await one.does(() =>
      one.client.remember("x", { keep: KEEP }, async () => {
        const error = await failure(one.client.remember("x", { keep: KEEP, wait: 100 }, () => 1));
        return error instanceof Error && { ...error, message: error.message };
      }),
    );
    expect(value).toMatchObject({ code: "LOCK_TIMEOUT", heldBy: "this process" });
    expect((value as Error).message).toMatch(
      /^The run of 'x' was still under way in this process \(pid 1000\) when .* waits for itself: use another name\.$/,
    );
  }),
);
