import { describe, expect, test } from "vitest";
import type { OnceOptions, OnceResult, Turn } from "../../../src/index.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { outcomeOf } from "./steps.ts";

// docs/guarantees.md, "runOnce".

const EVERY = 60_000;
const LEASE = 10_000;
const KEY = "holdfast:once:{job}";

type Job = (turn: Turn) => unknown;

const run = (
  one: SceneProcess,
  body: Job,
  options: Partial<OnceOptions> = {},
): Promise<OnceResult<unknown>> =>
  one.does(() => one.client.runOnce("job", { every: EVERY, lease: LEASE, ...options }, body));

/** Another process tries each 100 ms. Returns how many ms passed until its body began. */
async function next({ timed, pass }: Scene, one: SceneProcess, options?: Partial<OnceOptions>) {
  const until = async (): Promise<void> => {
    while (!(await run(one, () => {}, options)).ran) await pass(100);
  };
  return (await timed(until())).took;
}

/** Is it `ms`, but for the tries of `next`? */
const expectAbout = (took: number, ms: number): void => {
  expect(took).toBeGreaterThan(ms - 10);
  expect(took).toBeLessThan(ms + 210);
};

describe("runOnce", () => {
  test(
    "the body returns: the next run begins when the interval is over",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      expect(await run(one, () => "done")).toEqual({ ran: true, value: "done" });
      expect(await run(other, () => {})).toMatchObject({ ran: false, running: false });
      expectAbout(await next(world, other), EVERY);
    }),
  );

  test(
    "calls that cross the end of a slot compete for the next one: they are answered at once",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const aligned = { aligned: true };
      await run(one, () => {}, aligned);
      await run(other, () => {}, aligned);
      const { remaining } = (await run(other, () => {}, aligned)) as { remaining: number };
      await world.pass(remaining - 0.5); // half of it was on the way
      const { result, took } = await world.timed(run(other, () => "next", aligned));
      expect([result, took < 2]).toEqual([{ ran: true, value: "next" }, true]);
    }),
  );

  test(
    "the body takes longer than the interval: it goes on, renewed, and the next run begins when it has ended",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const long = run(one, async ({ signal }) => {
        await one.sleep(1.5 * EVERY);
        return signal.aborted;
      });
      await world.pass(100);
      expect(await run(other, () => {})).toMatchObject({ ran: false, running: true });
      expectAbout(await next(world, other), 1.5 * EVERY - 100);
      expect(await long).toEqual({ ran: true, value: false });
    }),
  );

  test.each([
    ["again", LEASE],
    ["keep", EVERY],
  ] as const)("the body throws, onCrash %s: the call rejects with that error", (onCrash, ms) =>
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const options = { onCrash };
      const fail = () => {
        throw new Error("no");
      };
      await expect(run(one, fail, options)).rejects.toThrow("no");
      expectAbout(await next(world, other, options), ms);
    })(),
  );

  test.each([
    ["again", LEASE],
    ["keep", EVERY],
  ] as const)(
    "the process crashes in the body, onCrash %s: the next run begins after its time",
    (onCrash, ms) =>
      scene(async (world) => {
        const [one, other] = world.processes(2);
        const options = { onCrash };
        void run(one, () => one.sleep(EVERY), options);
        await world.pass(1_000);
        one.crash();
        expectAbout(await next(world, other, options), ms - 1_000);
      })(),
  );

  test(
    "the process is paused for longer than the lease: its signal aborts, LOCK_LOST, and another run may begin",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      let turn: Turn | null = null;
      const lost = outcomeOf(
        run(one, async (own) => {
          turn = own;
          await one.sleep(EVERY);
        }),
      );
      await world.pass(1_000);
      one.pause(3 * LEASE);
      expectAbout(await next(world, other), LEASE - 1_000);
      await world.pass(3 * LEASE);
      expect(turn as unknown).toMatchObject({ held: false, signal: { aborted: true } });
      expect(await lost).toEqual(["LOCK_LOST", "expired"]);
    }),
  );

  test(
    "the process is paused for longer than the lease: its late end takes nothing from the run that is under way",
    scene(async (world) => {
      const [one, other, third] = world.processes(3);
      const lost = outcomeOf(run(one, () => one.sleep(EVERY)));
      await world.pass(1_000);
      one.pause(3 * LEASE);
      await world.pass(LEASE);
      const heir = run(other, async (turn) => {
        await other.sleep(EVERY - 5_000);
        return turn.held;
      });
      expect(await lost).toEqual(["LOCK_LOST", "expired"]);
      expect(await run(third, () => {})).toMatchObject({ ran: false, running: true });
      expect(await heir).toEqual({ ran: true, value: true });
      expect(await run(third, () => {})).toMatchObject({ ran: false, running: false });
    }),
  );

  test(
    "close() while the body runs, and `grace` ends: LOCK_LOST, closed",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const lost = outcomeOf(run(one, () => one.sleep(EVERY)));
      await world.pass(1_000);
      await one.does(() => one.client.close({ grace: 500 }));
      const took = await next(world, other);
      expect(took).toBeLessThan(LEASE + 200);
      expect(await lost).toEqual(["LOCK_LOST", "closed"]);
    }),
  );

  test(
    "the turn is deleted: LOCK_LOST at the next renewal; the next run begins at once",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const lost = world.timed(
        outcomeOf(
          run(one, async ({ signal }) => {
            await new Promise((resolve) => signal.addEventListener("abort", resolve));
          }),
        ),
      );
      await world.pass(1_000);
      world.redis.drop("job");
      expect(await next(world, other)).toBeLessThan(5);
      const { result, took } = await lost;
      expect(result?.[0]).toBe("LOCK_LOST");
      expect(result?.[1]).toMatch(/gone|taken/);
      expect(took).toBeLessThanOrEqual(LEASE / 3 + 10);
    }),
  );

  test(
    "the turn of a finished run is deleted: forgotten without a report",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const errors = one.heard("error");
      await run(one, () => {});
      world.redis.drop("job");
      expect(await next(world, other)).toBeLessThan(5);
      expect(errors).toEqual([]);
    }),
  );

  test(
    "Redis does not answer before the body: LOCK_UNAVAILABLE after replyTimeout, and the body does not run",
    scene(async (world) => {
      const [one] = world.processes(1);
      await run(one, () => {}, { every: 10 });
      one.freeze(20_000);
      let runs = 0;
      const { result, took } = await world.timed(outcomeOf(run(one, () => runs++)));
      expect([result, runs]).toEqual([["LOCK_UNAVAILABLE", undefined], 0]);
      expect(took).toBeGreaterThan(4_990);
      expect(took).toBeLessThan(5_100);
      await world.pass(20_000);
    }),
  );

  test(
    "Redis does not answer after the body: the call resolves, with an error event; the next run begins when the interval is over",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const errors = one.heard("error");
      const outcome = await run(one, () => {
        one.freeze(7_000);
        return "done";
      });
      expect(outcome).toEqual({ ran: true, value: "done" });
      expect(errors.map(({ code }) => code)).toEqual(["LOCK_UNAVAILABLE"]);
      expectAbout(await next(world, other), EVERY - 5_000);
    }),
  );

  test(
    "the reply to its beginning is lost, and the command comes again: the body runs once",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      let runs = 0;
      const cut = one.on("begin").executed(() => one.commands.cut());
      const call = run(one, () => ++runs);
      await cut;
      await one.on("begin").executed();
      expect(await call).toEqual({ ran: true, value: 1 });
      expect(await run(other, () => ++runs)).toMatchObject({ ran: false, running: false });
    }),
  );

  test(
    "the same, and the command fails: the call asks again",
    scene(async (world) => {
      const [one] = world.processes(1);
      one.losesCommands("fail");
      const cut = one.on("begin").executed(() => one.commands.cut());
      const call = run(one, ({ held }) => held);
      await cut;
      expect(await call).toEqual({ ran: true, value: true });
    }),
  );

  test.each([
    ["", EVERY],
    [", also if the interval is over by then", 20],
  ] as const)("the reply to its end is lost, and the command comes again: no loss%s", (_, every) =>
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const errors = one.heard("error");
      const cut = one.on("end").executed(() => one.commands.cut());
      const call = run(one, () => one.sleep(30).then(() => "done"), { every });
      await cut;
      await one.on("end").executed();
      expect(await call).toEqual({ ran: true, value: "done" });
      expect(errors).toEqual([]);
      if (every === EVERY) expect(await run(other, () => {})).toMatchObject({ ran: false, running: false });
      else expect(world.redis.keys("job")).toEqual([]);
    })(),
  );

  test(
    "its end is lost, and the command fails: the caller has its result, and the turn ends",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      one.losesCommands("fail");
      const errors = one.heard("error");
      const cut = one.on("end").sent(() => one.commands.cut());
      const call = run(one, () => "done");
      await cut;
      expect(await call).toEqual({ ran: true, value: "done" });
      expect(errors.map(({ code }) => code)).toEqual(["LOCK_UNAVAILABLE"]);
      await world.pass(1_000);
      expect(await run(other, () => {})).toMatchObject({ ran: false, running: false });
    }),
  );

  test(
    "its caller goes while its beginning is under way: the turn is taken back",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const gone = new AbortController();
      one.commands.freeze(1_000);
      let runs = 0;
      const call = run(one, () => runs++, { signal: gone.signal }).catch((reason: unknown) => reason);
      await world.pass(100);
      gone.abort("gone");
      expect([await call, runs]).toEqual(["gone", 0]);
      await world.pass(1_000);
      expect(world.redis.keys("job")).toEqual([]);
      expect(await next(world, other)).toBeLessThan(5);
    }),
  );

  test(
    "the client is closed between two tries of a beginning: the turn is taken back",
    scene(async (world) => {
      const [one] = world.processes(1);
      await run(one, () => {}, { every: 10 });
      await world.pass(20);
      one.losesCommands("fail");
      const cut = one.on("begin").executed(() => one.commands.cut({ back: 300 }));
      const call = outcomeOf(run(one, () => expect.unreachable()));
      await cut;
      await world.pass(50);
      expect(world.redis.keys("job")).toHaveLength(1);
      await one.does(() => one.client.close());
      expect(await call).toEqual(["CLIENT_CLOSED", undefined]);
      expect(world.redis.keys("job")).toEqual([]);
    }),
  );

  test.each([
    ["2r what that version likes", "LOCK_FORMAT"],
    ["hello", "LOCK_UNAVAILABLE"],
  ])("its key has a turn of another format, or another text (%s): refused at once", (text, code) =>
    scene(async (world) => {
      const [one] = world.processes(1);
      world.redis.overwrite("holdfast:once:{job}", text);
      const { result, took } = await world.timed(outcomeOf(run(one, () => expect.unreachable())));
      expect(result?.[0]).toBe(code);
      expect(took).toBeLessThan(5);
    })(),
  );

  test(
    "a copy of its beginning arrives after a finished run: it begins nothing",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      // The beginning is not the connection's first command.
      await run(one, () => {}, { every: 10 });
      await world.pass(20);
      const cut = one.on("begin").sent(() => one.commands.cut({ copies: 3_000, back: 20 }));
      const call = run(one, () => one.sleep(100), { every: 50, lease: LEASE });
      await cut;
      await one.on("begin").executed();
      await call;
      expect(world.redis.keys("job")).toEqual([]);
      await one.on("begin").executed();
      expect(world.redis.keys("job")).toEqual([]);
      expect(await next(world, other)).toBeLessThan(5);
    }),
  );

  test(
    "a copy of its second query arrives after a run that its first query began: it begins nothing",
    scene(async (world) => {
      const [one] = world.processes(1);
      const every = 500;
      await run(one, () => {}, { every: 10 });
      await world.pass(20);
      const first = one.on("begin").executed(() => one.commands.freezeReplies(10_000));
      const call = world.timed(run(one, () => "done", { every }));
      await first;
      const began = world.now();
      await one.on("begin").sent(() => one.commands.cut({ copies: 300 }));
      expect(world.now()).toBeGreaterThan(began + every);
      const { result, took } = await call;
      expect(result).toEqual({ ran: true, value: "done" });
      // Its second query was told that its turn runs.
      expect(took).toBeLessThan(610);
      await one.on("begin").executed();
      expect(world.redis.keys("job")).toEqual([]);
    }),
  );

  test(
    "the same, and the server's time was not known at its first query",
    scene(async (world) => {
      const [one] = world.processes(1);
      const every = 500;
      one.losesCommands("fail");
      const first = one.on("begin").executed(() => one.commands.cut({ back: 5 }));
      const call = run(one, () => "done", { every });
      await first;
      const began = world.now();
      await world.pass(8);
      one.losesCommands("sent again");
      await (await one.take("lock")).unlock();
      await one.on("begin").sent(() => one.commands.cut({ copies: 480 }));
      expect(await call).toEqual({ ran: true, value: "done" });
      await one.on("begin").executed();
      expect(world.now()).toBeGreaterThan(began + every);
      expect(world.redis.keys("job")).toEqual([]);
    }),
  );

  test(
    "the server's clock is set back by an hour: the next run begins at the latest an interval after the next call",
    scene(async (world) => {
      const [one, other] = world.processes(2);
      await run(one, () => {});
      world.redis.setBack(3_600_000);
      await world.pass(1_000);
      expectAbout(await next(world, other), EVERY);
    }),
  );

  test(
    "several processes call at once: the body runs in one of them",
    scene(async (world) => {
      const all = world.processes(5);
      let runs = 0;
      const results = await Promise.all(all.map((one) => run(one, () => ++runs)));
      expect([runs, results.filter(({ ran }) => ran).length]).toEqual([1, 1]);
    }),
  );
});

test(
  "the body throws, and the interval is shorter than the lease: the next run begins when the interval is over",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const options = { every: 5_000 };
    const fail = (): never => {
      throw new Error("no");
    };
    await expect(run(one, fail, options)).rejects.toThrow("no");
    await world.pass(4_990);
    expect((await run(other, () => {}, options)).ran).toBe(false);
    await world.pass(20);
    expect((await run(other, () => {}, options)).ran).toBe(true);
  }),
);

test(
  "another turn is there when the body ends: LOCK_LOST, taken, and that turn stays",
  scene(async (world) => {
    const [one] = world.processes(1);
    const others = "1r 1790000000000000 somebody";
    const lost = await outcomeOf(run(one, () => world.redis.overwrite(KEY, others)));
    expect(lost).toEqual(["LOCK_LOST", "taken"]);
    expect(world.redis.dropKey(KEY)).toBe(others);
  }),
);

test(
  "the turn is lost: the call rejects with the loss, whose cause is the body's error, and `lost` reports it",
  scene(async (world) => {
    const [one] = world.processes(1);
    const lost = one.heard("lost");
    const stopped = new Error("stopped");
    const call = run(one, async ({ signal }) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      throw stopped;
    });
    await world.pass(1_000);
    world.redis.drop("job");
    await expect(call).rejects.toMatchObject({
      code: "LOCK_LOST",
      reason: "gone",
      lockName: "job",
      cause: stopped,
    });
    expect(lost).toMatchObject([{ kind: "once", name: "job" }]);
    expect(world.redis.keys("job")).toEqual([]);
  }),
);

test(
  "a run and a refused call have events of their clients",
  scene(async (world) => {
    const both = world.processes(2);
    const told: unknown[] = [];
    for (const { client } of both) {
      client.on("acquire", ({ kind, token, kept }) => told.push(["acquire", kind, Number(token) > 0, kept]));
      client.on("release", ({ kind, heldFor }) => told.push(["release", kind, heldFor >= 0]));
      client.on("giveup", ({ kind, why }) => told.push(["giveup", kind, why]));
    }
    for (const one of both) await run(one, () => {});
    expect(told).toEqual([
      ["acquire", "once", true, false],
      ["release", "once", true],
      ["giveup", "once", "busy"],
    ]);
  }),
);

test(
  "close() waits for a body that ends within `grace`, and refuses later calls; one that does not end is reported",
  scene(async (world) => {
    const [one, two, other] = world.processes(3);
    let hasEnded = false;
    const call = run(one, async () => {
      await one.sleep(300);
      hasEnded = true;
      return "done";
    });
    await world.pass(50);
    const closing = one.does(() => one.client.close());
    expect(await outcomeOf(run(one, () => expect.unreachable()))).toEqual(["CLIENT_CLOSED", undefined]);
    await closing;
    expect(hasEnded).toBe(true);
    expect(await call).toEqual({ ran: true, value: "done" });
    expect(await run(other, () => expect.unreachable())).toMatchObject({ ran: false, running: false });

    world.redis.drop("job");
    const errors = two.heard("error");
    const lost = outcomeOf(run(two, () => two.sleep(5_000)));
    await world.pass(50);
    await two.does(() => two.client.close({ grace: 100 }));
    expect(errors).toMatchObject([{ code: "LOCK_LEFT_BEHIND", lockName: "job" }]);
    expect(await lost).toEqual(["LOCK_LOST", "closed"]);
  }),
);

test(
  "its signal has aborted: nothing is sent; it aborts in the body: the run goes on",
  scene(async (world) => {
    const [one] = world.processes(1);
    const reason = new Error("not now");
    const { sent } = one;
    const refused = run(one, () => expect.unreachable(), { signal: AbortSignal.abort(reason) });
    expect(await refused.catch((error: unknown) => error)).toBe(reason);
    expect(one.sent).toBe(sent);
    const late = new AbortController();
    const body = (): string => {
      late.abort(reason);
      return "ran";
    };
    expect(await run(one, body, { signal: late.signal })).toEqual({ ran: true, value: "ran" });
  }),
);
