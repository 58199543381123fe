import { expect, test } from "vitest";
import { failure, got, Job, warm } from "./results.ts";
import { scene } from "./scene.ts";
import { BY_MESSAGE, W } from "./steps.ts";

// docs/guarantees.md: results that callers share, in rare orders of events.

test(
  "Redis does not answer from the end of a long body until its lease is over: its result is stored when it does",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    const job = new Job();
    const running = job.call(one, 70_000, { lease: 1_000 });
    await world.pass(69_900);
    one.losesCommands("fail");
    one.cutOff(20_000);
    expect(await got(running)).toBe(1);
    await world.pass(25_000);
    expect(await got(job.call(two))).toBe(1);
  }),
);

test(
  "the command that stores a result is lost: its hold does not end without it",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    await warm(world, one, two);
    one.losesCommands("fail");
    const job = new Job();
    void one.on("finish").sent(() => one.commands.cut());
    const running = job.call(one, 100);
    await world.pass(5);
    expect(await got(job.call(two))).toBe(1);
    expect(await got(running)).toBe(1);
  }),
);

test(
  "the command that stores a result arrives after its hold is over, and after the next result: its call has lost",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    await warm(world, one, two);
    const job = new Job();
    void one.on("finish").sent(() => one.commands.freeze(4_000));
    const old = failure(job.call(one, 10, { lease: 1_000 }));
    await world.pass(5);
    expect(await got(job.call(two))).toBe(2);
    expect(await old).toMatchObject({ code: "LOCK_LOST" });
  }),
);

test(
  "a message that there is a result is read before the answer that its caller is queued: it does not wait",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    await warm(world, one, two);
    const job = new Job();
    const running = job.call(one, 20, { keep: 0 });
    await world.pass(5);
    void two.on("take").executed(() => two.commands.freezeReplies(50));
    const waiting = job.call(two, 20, { keep: 0 });
    const { result, took } = await world.timed(waiting);
    expect(result.value).toBe(1);
    expect(took).toBeLessThan(50 + 4 * BY_MESSAGE);
    await running;
  }),
);

test(
  "a place is granted a run after its caller has left: the next waiter runs at once",
  scene(async (world) => {
    const [one, two, three] = world.processes(3);
    await warm(world, one, two, three);
    const job = new Job();
    const running = failure(job.call(one, 100, {}, true));
    await world.pass(5);
    const leaving = new AbortController();
    const queued = two.on("take").executed(() => two.commands.freezeReplies(200));
    const left = failure(job.call(two, 20, { signal: leaving.signal }));
    await queued;
    const waiting = job.call(three);
    leaving.abort(new Error("enough"));
    await left;
    await running;
    const { took } = await world.timed(waiting);
    expect(took).toBeLessThan(W / 2);
  }),
);

test(
  "a caller comes between an answer and its reading: it has not waited for the run under way, which has ended",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    await warm(world, one, two);
    const job = new Job();
    const running = job.call(one, 20, { keep: 0 });
    await world.pass(5);
    void two.on("take").executed(() => two.commands.freezeReplies(50));
    const early = got(job.call(two, 20, { keep: 0 }));
    await running;
    const late = got(job.call(two, 20, { keep: 0 }));
    expect(await early).toBe(1);
    expect(await late).toBe(2);
  }),
);

test(
  "a caller comes after forget(), and an answer with what was forgotten is read then: it runs",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    await warm(world, one, two);
    const job = new Job();
    await job.call(one);
    const executed = two.on("take").executed(() => two.commands.freezeReplies(50));
    const early = got(job.call(two));
    await executed;
    expect(await one.does(() => one.client.forget("x"))).toBe(true);
    const late = got(job.call(two));
    expect(await early).toBe(1);
    expect(await late).toBe(2);
  }),
);

test(
  "a run was stopped and never learned it, and a late copy of its first command is renewed: its result is refused",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    await warm(world, one, two);
    const job = new Job();
    void one.on("take").sent(() => one.commands.cut({ copies: 400 }));
    const old = failure(job.call(one, 65_000, { lease: 1_000 }));
    await one.on("take").executed();
    one.messages.freezeReplies(70_000);
    await one.on("renew").executed();
    expect(await two.does(() => two.client.stopRun("x"))).toBe(true);
    // Redis forgets after 60 s that this was the last run.
    expect(await got(job.call(two, 20, { keep: 0 }))).toBe(2);
    expect(await old).toMatchObject({ code: "LOCK_LOST" });
    expect(await got(job.call(two))).toBe(3);
  }),
);
