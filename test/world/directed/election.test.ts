import { expect, test } from "vitest";
import type { Term } from "../../../src/index.ts";
import { campaign, election, observe } from "./observing.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, L, R } from "./steps.ts";

// docs/guarantees.md, "election".

/** A leader, and candidates that wait, the first one first. */
async function led({ pass }: Scene, leader: SceneProcess, ...candidates: readonly SceneProcess[]) {
  const term = await campaign(leader, "one");
  const waiting: Promise<Term>[] = [];
  for (const [i, one] of candidates.entries()) {
    waiting.push(campaign(one, `candidate ${i}`));
    await pass(20);
  }
  return { term, waiting };
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve())));

const lossOf = (term: Term): unknown => (term.signal.reason as { reason?: string } | undefined)?.reason;

test(
  "the leader resigns: the next candidate leads one message later, with a larger token",
  scene(async (world) => {
    const [one, two, three] = world.processes(3);
    const { term, waiting } = await led(world, one, two, three);
    await term.resign();
    const { result: next, took } = await world.timed(waiting[0] as Promise<Term>);
    // The message, and the value that it publishes.
    expect(took).toBeLessThan(BY_MESSAGE);
    expect(next.token).toBeGreaterThan(term.token);
    await next.resign();
    await (await waiting[1])?.resign();
  }),
);

test(
  "a candidate that resigns and campaigns again queues at the end",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    const { term, waiting } = await led(world, one, two);
    await term.resign();
    const again = campaign(one, "again");
    const next = await (waiting[0] as Promise<Term>);
    await world.pass(100);
    expect(next.held).toBe(true);
    await next.resign();
    await (await again).resign();
  }),
);

test(
  "the leader's process dies: the next candidate leads within the lease and R",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    const { waiting } = await led(world, one, two);
    one.crash();
    const { result: next, took } = await world.timed(waiting[0] as Promise<Term>);
    expect(took).toBeGreaterThan(L - 100);
    expect(took).toBeLessThanOrEqual(L + R);
    await next.resign();
  }),
);

test(
  "the leader's process is paused for longer than the lease: `expired`, and its next line shows it",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    const { term, waiting } = await led(world, one, two);
    const noticed = one.does(() => {
      one.block(L + 10_000);
      expect(term.held).toBe(false);
      expect(term.lost).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      expect(() => term.assertHeld()).toThrow(expect.objectContaining({ reason: "expired" }));
    });
    const { result: next, took } = await world.timed(waiting[0] as Promise<Term>);
    expect(took).toBeLessThanOrEqual(L + R);
    await noticed;
    await next.resign();
  }),
);

test(
  "the leader is cut off for longer than the lease: `expired` before the next one leads",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    const { term, waiting } = await led(world, one, two);
    one.cutOff(2 * L);
    const { result: next, took } = await world.timed(waiting[0] as Promise<Term>);
    expect(took).toBeLessThanOrEqual(L + R);
    expect([term.held, lossOf(term)]).toEqual([false, "expired"]);
    await next.resign();
  }),
);

test(
  "the key is deleted: until the leader's next renewal two lead, with different tokens",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    const { term, waiting } = await led(world, one, two);
    world.redis.drop("e");
    const { result: next, took } = await world.timed(waiting[0] as Promise<Term>);
    expect(took).toBeLessThanOrEqual(R);
    expect([term.held, next.held, next.token > term.token]).toEqual([true, true, true]);
    await world.pass(L / 3);
    expect([term.held, lossOf(term)]).toEqual([false, "taken"]);
    await next.resign();
  }),
);

test(
  "forceResign(): `revoked`, and the next candidate leads at once",
  scene(async (world) => {
    const [one, two, admin] = world.processes(3);
    const { term, waiting } = await led(world, one, two);
    expect(await admin.client.election("e").forceResign()).toBe(true);
    const { result: next, took } = await world.timed(waiting[0] as Promise<Term>);
    expect(took).toBeLessThan(BY_MESSAGE);
    expect([term.held, lossOf(term)]).toEqual([false, "revoked"]);
    await next.resign();
  }),
);

test(
  "forceResign() while the leader receives no messages: it notices at its next renewal",
  scene(async (world) => {
    const [one, two, admin] = world.processes(3);
    const { term, waiting } = await led(world, one, two);
    one.messages.freezeReplies(60_000);
    await admin.client.election("e").forceResign();
    const next = await (waiting[0] as Promise<Term>);
    expect(term.held).toBe(true);
    await world.pass(L / 3);
    expect([term.held, lossOf(term)]).toEqual([false, "taken"]);
    await next.resign();
  }),
);

test(
  "close(): `closed` after `grace`, and the next candidate leads",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    const { term, waiting } = await led(world, one, two);
    await one.does(() => one.client.close({ grace: 1_000 }));
    expect([term.held, lossOf(term)]).toEqual([false, "closed"]);
    const { result: next, took } = await world.timed(waiting[0] as Promise<Term>);
    expect(took).toBeLessThan(BY_MESSAGE);
    await next.resign();
  }),
);

test(
  "observers are notified of each change by a message",
  scene(async (world) => {
    const [one, two, watcher] = world.processes(3);
    const { seen, end } = observe(watcher);
    await world.pass(50);
    const term = await campaign(one, "one");
    await world.pass(500);
    await term.proclaim("one and a half");
    await world.pass(500);
    await term.resign();
    await world.pass(500);
    const next = await campaign(two, "two");
    await world.pass(500);
    expect(seen).toEqual([null, "one", "one and a half", null, "two"]);
    await next.resign();
    await end();
  }),
);

test(
  "the leader crashes: observers are shown it at most until its term would end",
  scene(async (world) => {
    const [one, watcher] = world.processes(2);
    await campaign(one, "one");
    const { seen, end } = observe(watcher);
    await world.pass(50);
    one.crash();
    await world.pass(L - 1_000);
    expect(seen).toEqual(["one"]);
    await world.pass(2_000);
    expect(seen).toEqual(["one", null]);
    await end();
  }),
);

test(
  "an observer is paused until after a crashed leader's term, and then reads a message first: it shows no leader",
  scene(async (world) => {
    const [one, two, watcher] = world.processes(3);
    await campaign(one, "one");
    const { seen, end } = observe(watcher);
    await world.pass(50);
    one.crash();
    watcher.pause(L + 10_000);
    const next = await campaign(two, "two");
    // Its query after the pause gets no answer for a while.
    watcher.commands.freezeReplies(20_000);
    await world.pass(15_000);
    expect(seen).toEqual(["one", null]);
    await next.resign();
    await end();
  }),
);

test(
  "a message to an observer is lost: it is noticed within 12.5 s",
  scene(async (world) => {
    const [one, watcher] = world.processes(2);
    const term = await campaign(one, "one");
    const { seen, end } = observe(watcher);
    await world.pass(50);
    watcher.messages.freezeReplies(60_000);
    await term.proclaim("two");
    await world.until(() => seen.length > 1);
    const { took } = await world.timed(world.until(() => seen.at(-1) === "two"));
    expect(took).toBeLessThan(12_500);
    await term.resign();
    await end();
  }),
);

test(
  "both connections of an observer break: it sees the current state afterwards, and receives messages again",
  scene(async (world) => {
    const [one, two, watcher] = world.processes(3);
    const term = await campaign(one, "one");
    const { seen, end } = observe(watcher);
    await world.pass(50);
    watcher.cutOff(1_000);
    await term.resign();
    const next = await campaign(two, "two");
    await world.pass(1_200);
    expect(seen.at(-1)).toBe("two");
    await next.proclaim("three");
    await world.pass(5);
    expect(seen.at(-1)).toBe("three");
    await next.resign();
    await world.pass(5);
    expect(seen.at(-1)).toBeNull();
    await end();
  }),
);

test(
  "Redis loses a proclaimed value: the leader proclaims it again at its next renewal",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const term = await campaign(one, "one");
    world.redis.drop("e", ":leader");
    expect(await other.client.election("e").leader()).toBeNull();
    await world.pass(L / 3 + 100);
    expect((await other.client.election("e").leader())?.value).toBe("one");
    await term.resign();
  }),
);

test(
  "runAsLeader: a lost term aborts the body's signal; the process campaigns again, and the body runs again",
  scene(async (world) => {
    const [one, admin] = world.processes(2);
    const terms: Term[] = [];
    const leading = one.does(() =>
      one.client.election("e").runAsLeader({ value: "one" }, async (term) => {
        terms.push(term);
        if (terms.length > 1) return "second";
        await new Promise((resolve) => term.signal.addEventListener("abort", resolve));
        return "does not count";
      }),
    );
    await world.until(() => terms.length === 1);
    await admin.client.election("e").forceResign();
    expect(await leading).toEqual({ terms: 2, value: "second" });
    expect(terms[1]?.token).toBeGreaterThan(terms[0]?.token ?? 0);
  }),
);

test(
  "runAsLeader: the body throws while it leads: the call resigns, and rejects with that error",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    const leading = one.does(() =>
      one.client.election("e").runAsLeader(async () => {
        await one.sleep(100);
        throw new Error("no");
      }),
    );
    const waiting = world.pass(50).then(() => campaign(two, "two"));
    await expect(leading).rejects.toThrow("no");
    await (await waiting).resign();
  }),
);

test(
  "runAsLeader: Redis cannot be reached before its first term: LOCK_UNAVAILABLE",
  scene(async (world) => {
    const [one] = world.processes(1);
    await (await campaign(one, "one")).resign();
    one.cutOff(20_000);
    const leading = one.does(() => one.client.election("e").runAsLeader(() => "led"));
    await expect(leading).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    await world.pass(20_000);
  }),
);

test(
  "runAsLeader: Redis cannot be reached later: an error event, and the call tries again",
  scene(async (world) => {
    const [one] = world.processes(1);
    const errors = one.heard("error");
    let runs = 0;
    let atLoss = 0;
    const leading = one.does(() =>
      one.client.election("e").runAsLeader(async (term) => {
        if (++runs > 1) return "led again";
        await new Promise((resolve) => term.signal.addEventListener("abort", resolve));
        // Those of its renewals.
        atLoss = errors.length;
        return "lost";
      }),
    );
    await world.pass(100);
    one.cutOff(2 * L);
    expect(await leading).toEqual({ terms: 2, value: "led again" });
    expect(errors.slice(atLoss)).not.toEqual([]);
    for (const error of errors.slice(atLoss)) expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  }),
);

test(
  "the server's clock is set back by an hour: the leader goes on, and the next one leads by message",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    const { term, waiting } = await led(world, one, two);
    world.redis.setBack(3_600_000);
    await world.pass(2 * L);
    const shown = await two.client.election("e").leader();
    expect([term.held, shown?.token]).toEqual([true, term.token]);
    await term.resign();
    const { result: next, took } = await world.timed(waiting[0] as Promise<Term>);
    expect(took).toBeLessThan(BY_MESSAGE);
    expect(next.token).toBeGreaterThan(term.token);
    await next.resign();
  }),
);

test(
  "runAsLeader: it resolves with what the body returns, which is seen to lead, and its term is over by then",
  scene(async (world) => {
    const [one] = world.processes(1);
    const { terms, value: told } = await one.does(() =>
      election(one).runAsLeader({ value: "me" }, async ({ token, value }) => {
        return { token, value, seen: await election(one).leader() };
      }),
    );
    expect([terms, told?.value]).toEqual([1, "me"]);
    expect(told?.seen).toMatchObject({ id: one.client.id, label: null, value: "me", token: told?.token });
    expect(await one.does(() => election(one).leader())).toBeNull();
    expect(await one.does(() => election(one).runAsLeader(() => 7))).toEqual({ terms: 1, value: 7 });
  }),
);

test(
  "runAsLeader: an error after a loss is the cause of an event, the loss itself is none, and each error makes the pause longer",
  scene(async (world) => {
    const [one, admin] = world.processes(2);
    const errors = one.heard("error");
    const thrown = [new Error("first"), new Error("second")];
    const [begins, ends]: [number[], number[]] = [[], []];
    const leading = one.does(() =>
      election(one).runAsLeader(async (term) => {
        begins.push(world.now());
        if (begins.length === 4) return;
        await aborted(term.signal);
        ends.push(world.now());
        throw thrown[begins.length - 1] ?? term.lost;
      }),
    );
    for (let term = 1; term < 4; term++) {
      await world.until(() => begins.length === term);
      await admin.does(() => election(admin).forceResign());
    }
    expect(await leading).toEqual({ terms: 4, value: undefined });
    expect(errors.map(({ cause }) => cause)).toEqual(thrown);
    expect(errors[0]).toMatchObject({
      code: "BODY_FAILED",
      lockName: "e",
      message: "The body of runAsLeader for election 'e' failed after its term was lost: first.",
    });
    const pauses = ends.map((end, i) => (begins[i + 1] ?? 0) - end);
    // Each by a quarter shorter or longer, and the commands.
    for (const [i, most] of [300, 600, 150].entries()) {
      expect(pauses[i]).toBeGreaterThan(0.75 * most - 1);
      expect(pauses[i]).toBeLessThan(1.25 * most + 10);
    }
  }),
);

test(
  "runAsLeader: its signal ends a candidate at once, a leader through its body, and a pause",
  scene(async (world) => {
    const [one, two] = world.processes(2);
    const stop = new AbortController();
    const { signal } = stop;
    const leading = one.does(() =>
      election(one).runAsLeader({ signal }, async (term) => {
        await aborted(term.signal);
        return [term.held, term.lost, term.signal.reason];
      }),
    );
    await world.pass(50);
    const waiting = two.does(() => election(two).runAsLeader({ signal }, () => expect.unreachable()));
    await world.pass(50);
    const reason = new Error("the process stops");
    stop.abort(reason);
    const { result, took } = await world.timed(waiting);
    expect([result, took < 1]).toEqual([{ terms: 0, value: undefined }, true]);
    expect(await leading).toEqual({ terms: 1, value: [true, null, reason] });
    expect(await two.does(() => election(two).leader())).toBeNull();

    const later = new AbortController();
    const paused = one.does(() =>
      election(one).runAsLeader({ signal: later.signal }, (term) => aborted(term.signal)),
    );
    await world.pass(50);
    await two.does(() => election(two).forceResign());
    // The pause is 112 ms at least.
    await world.pass(50);
    later.abort(reason);
    const over = await world.timed(paused);
    expect([over.result, over.took < 1]).toEqual([{ terms: 1, value: undefined }, true]);
  }),
);
