import { expect, test } from "vitest";
import { HOLDER_REPLY, REPLY_TIMEOUT } from "../../../src/defaults.ts";
import { scene } from "./scene.ts";
import { noting, outcomeOf, warm } from "./steps.ts";

// A place that cannot be sure: whether an earlier copy of its command has run, whether its hold is
// over, whether another process waits, or whether messages arrive.

/** ms: a caller has the lock at once. */
const AT_ONCE = 5;

test(
  "a copy of an acquire comes too late, and an earlier one has taken the lock: its caller has it at once",
  scene(async (world) => {
    const [near] = world.processes(1);
    // It knows Redis's time from now on, and receives no messages.
    await (await near.take("lock", { name: "b" })).unlock();
    const taken = near.on("acquire").executed(() => near.commands.cut({ back: 20 }));
    const waiting = near.take("lock");
    await taken;
    world.redis.setBack(-10_000);
    const { result, took } = await world.timed(waiting);
    expect(took).toBeLessThan(20 + AT_ONCE);
    await result.unlock();
  }),
);

test(
  "the wall clock steps past the deadline, and no timer knows: a call that comes then has the lock at once",
  scene(async (world) => {
    const [near] = world.processes(1);
    const lost = near.heard("lost");
    const held = await near.take("lock");
    near.stepClock(60_000);
    const { result, took } = await world.timed(near.tryTake("lock"));
    expect(took).toBeLessThan(AT_ONCE);
    expect(result?.held).toBe(true);
    expect(lost).toMatchObject([{ token: held.token }]);
    expect(await outcomeOf(held.unlock())).toEqual(["LOCK_LOST", "expired"]);
    await result?.unlock();
  }),
);

test(
  "a holder's connection for messages is cut when another process begins to wait: that one comes first",
  scene(async (world) => {
    const [near, far] = world.processes(2);
    await warm(world, near, far);
    await warm(world, far, near);
    const order: string[] = [];
    const line = noting(order, "lock");
    const held = await near.take("lock");
    const waiting = [line(near, "near")];
    near.messages.cut();
    waiting.push(line(far, "far"));
    // Sooner than its first re-check.
    await world.pass(500);
    await held.unlock();
    await Promise.all(waiting);
    expect(order).toEqual(["far", "near"]);
  }),
);

test(
  "a slot moves, and a renewal cannot say whether others wait: another process that waits comes first",
  scene(async (world) => {
    const [near, far] = world.processes(2);
    await warm(world, near, far);
    await warm(world, far, near);
    const order: string[] = [];
    const line = noting(order, "lock");
    const before = await far.take("lock");
    const first = near.take("lock");
    const waiting = [line(near, "near")];
    await world.pass(20);
    await before.unlock();
    // By a message: Redis does not notify it of others that wait.
    const held = await first;
    waiting.push(line(far, "far"));
    await near.on("renew").sent(() => world.redis.refuse("TRYAGAIN"));
    await near.on("renew").refused();
    await near.on("renew").executed(() => world.redis.refuse(null));
    await world.pass(50);
    await held.unlock();
    await Promise.all(waiting);
    expect(order).toEqual(["far", "near"]);
  }),
);

test(
  "Redis refuses the user its channel: a caller that waits is refused, and one that finds it free has it",
  scene(async (world) => {
    const [holder, near] = world.processes(2);
    near.heard("error");
    near.mayNotSubscribe();
    const held = await holder.take("lock");
    const { result, took } = await world.timed(outcomeOf(near.take("lock")));
    expect(result).toEqual(["LOCK_UNAVAILABLE", undefined]);
    expect(took).toBeLessThan(AT_ONCE);
    await held.unlock();
    await (await near.take("lock")).unlock();
  }),
);

test(
  "a process stands still while the answer to its command comes in time: its caller has the lock",
  scene(async (world) => {
    const [near] = world.processes(1);
    const executed = near.on("acquire").executed(() => near.pause(2_000));
    const waiting = near.take("lock", { wait: 100 });
    await executed;
    await (await waiting).unlock();
  }),
);

test(
  "callers come in each moment in which the subscription is acknowledged: they queue in that order",
  scene(async (world) => {
    const [holder, near] = world.processes(2);
    const held = await holder.take("fairLock");
    const order: string[] = [];
    const line = noting(order, "fairLock");
    const names = Array.from({ length: 40 }, (_, i) => `${i}`);
    const waiting = [line(near, "first")];
    await near.on("acquire").answered();
    await near.on("probe").answered(async () => {
      // One after the other, and no turn of the event loop in between.
      for (const name of names) {
        waiting.push(line(near, name));
        await null;
      }
    });
    await world.until(() => world.redis.queue("fair:a").length === names.length + 1);
    await held.unlock();
    await Promise.all(waiting);
    expect(order).toEqual(["first", ...names]);
  }),
);

test(
  "its subscription is given up: all its callers queue at once, and not each at the time of its next try",
  scene(async (world) => {
    const [holder, near] = world.processes(2);
    near.heard("error");
    near.withoutMessages(3_600_000);
    const held = await holder.take("fairLock");
    const waiting = [near.take("fairLock")];
    await world.pass(1_000);
    waiting.push(near.take("fairLock"));
    await world.pass(REPLY_TIMEOUT - 1_000 + 50);
    expect(world.redis.queue("fair:a")).toEqual([near.number, near.number]);
    await held.unlock();
    for (const one of waiting) await (await one).unlock();
  }),
);

test(
  "its subscription is given up, and refused after that: callers that come then are refused, as at first",
  scene(async (world) => {
    const [holder, near] = world.processes(2);
    near.heard("error");
    near.withoutMessages(REPLY_TIMEOUT + 1_000);
    const held = await holder.take("lock");
    const first = outcomeOf(near.take("lock", { wait: REPLY_TIMEOUT + 2_000 }));
    await world.pass(REPLY_TIMEOUT - 100);
    near.mayNotSubscribe();
    expect(await first).toEqual(["LOCK_TIMEOUT", undefined]);
    // This call subscribes once more, and does not need the answer.
    await (await near.take("lock", { name: "b" })).unlock();
    await world.pass(10);
    const { result, took } = await world.timed(outcomeOf(near.take("lock", { wait: 3_000 })));
    expect(result).toEqual(["LOCK_UNAVAILABLE", undefined]);
    expect(took).toBeLessThan(AT_ONCE);
    await held.unlock();
  }),
);

test(
  "a caller leaves before its command is answered, and another one waits: that one re-checks at its time",
  scene(async (world) => {
    const [holder, near] = world.processes(2);
    await warm(world, near, holder);
    const held = await holder.take("lock");
    const queued = near.on("acquire").executed(() => near.commands.freezeReplies(50));
    const leaving = new AbortController();
    const left = outcomeOf(near.take("lock", { signal: leaving.signal }));
    const waiting = near.take("lock");
    await queued;
    leaving.abort(new Error("enough"));
    await left;
    await near.on("acquire").answered();
    const { sent } = near;
    // Sooner than a re-check whose time has come.
    await world.pass(1_000);
    expect(near.sent).toBe(sent);
    await held.unlock();
    await (await waiting).unlock();
  }),
);

/** ms: shorter than two answers of a slow Redis. */
const SHORT = 100;
const tooShort = {
  code: "LOCK_UNAVAILABLE",
  message: expect.stringContaining("its lease of 100 ms was over"),
};

test(
  "Redis outruns a lease ten times, and was fast once in between: its caller is refused all the same",
  scene(async (world) => {
    const [near] = world.processes(1);
    await (await near.take("lock", { name: "b" })).unlock();
    const taken = near.on("acquire").executed(() => near.commands.freezeReplies(0.92 * SHORT));
    const renewed = near.on("renew").executed(() => near.commands.freezeReplies(0.2 * SHORT));
    // A longer wait than it takes: at its end the caller would be refused anyway.
    const call = near.take("lock", { lease: SHORT, wait: 60_000 }).catch((error: unknown) => error);
    await taken;
    await renewed;
    world.delay(0.3 * SHORT);
    const { result, took } = await world.timed(call);
    expect(result).toMatchObject(tooShort);
    expect(took).toBeLessThan(20_000);
    world.delay(0.2);
  }),
);

test(
  "Redis outruns a lease for half a second, and is fast after that: its caller has the lock",
  scene(async (world) => {
    const [near] = world.processes(1);
    await (await near.take("lock", { name: "b" })).unlock();
    world.delay(0.6 * SHORT);
    const waiting = near.take("lock", { lease: SHORT });
    await world.pass(700);
    world.delay(0.2);
    await (await waiting).unlock();
  }),
);

test(
  "Redis falls silent just before a caller's time ends: it is told that the lock is held, by no name",
  scene(async (world) => {
    const [far, near] = world.processes(2);
    await warm(world, near, far);
    const held = await far.take("lock");
    const call = world.timed(near.take("lock", { wait: 1_000 }).catch((error: unknown) => error));
    await world.until(() => world.redis.queue("lock:a").length === 1);
    await world.pass(1);
    near.freeze(3_000);
    const { result, took } = await call;
    expect(result).toMatchObject({ code: "LOCK_TIMEOUT", holder: null });
    expect(took).toBeLessThan(1_000 + HOLDER_REPLY + 10);
    await world.pass(3_000);
    await held.unlock();
  }),
);
