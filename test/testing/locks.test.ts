import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { type DeadlockError, type LockClient, LockLostError, LockTimeoutError } from "../../src/index.ts";
import { Unanswered } from "../../src/redis/unanswered.ts";
import { TestClient } from "../../src/tools/testing/client.ts";
import { createTestLocks, type TestLocksOptions } from "../../src/tools/testing/index.ts";
import { TestNetwork } from "../../src/tools/testing/test-network.ts";
import { lockOf } from "../support/permit.ts";
import { running } from "../support/result-runs.ts";
import { TestClients } from "../support/test-clients.ts";
import { until } from "../support/until.ts";

const open = new TestClients();
const pair = (options?: TestLocksOptions) => open.pair(options);

describe("locks in memory", () => {
  it.each(["lock", "fairLock", "redissonLock", "redissonFencedLock", "spinLock"] as const)(
    "%s excludes another client, which waits for it",
    async (kind) => {
      const [one, other] = pair();
      const lease = await lockOf(one, kind, "orders").lock();
      expect(await lockOf(other, kind, "orders").tryLock()).toBe(null);
      const next = lockOf(other, kind, "orders").lock({ wait: 10_000 });
      await lease.unlock();
      expect((await next).held).toBe(true);
    },
  );

  it("two stores are independent", async () => {
    const [[one], [stranger]] = [pair(), pair()];
    await one.lock("orders").lock();
    expect((await stranger.lock("orders").tryLock())?.held).toBe(true);
  });

  it("a semaphore gives its permits in order", async () => {
    const [one, other] = pair();
    const slots = one.semaphore("smtp", { permits: 2 });
    const [first] = [await slots.acquire(), await slots.acquire()];
    const next = other.semaphore("smtp", { permits: 2 }).acquire();
    expect(await slots.tryAcquire()).toBe(null);
    await first?.release();
    expect((await next).units).toBe(1);
    await slots.setPermits(5);
    expect(await other.semaphore("smtp").inspect()).toMatchObject({ permits: 5, isSet: true, used: 2 });
  });

  it("readers share, and a writer waits for them", async () => {
    const [one, other] = pair();
    const [mine, theirs] = [one.readWriteLock("config"), other.readWriteLock("config")];
    const [reader, beside] = [await mine.read.lock(), await theirs.read.lock()];
    const writer = mine.write.lock({ wait: 10_000 });
    expect(await theirs.write.tryLock()).toBe(null);
    await Promise.all([reader.unlock(), beside.unlock()]);
    expect((await writer).token).toBeGreaterThan(reader.token);
  });

  it("forceUnlock of one holder of a semaphore leaves the others theirs", async () => {
    const [one] = pair();
    const slots = one.semaphore("slots", { permits: 2, fair: true });
    await slots.acquire();
    await slots.acquire();
    const [seen, kept] = (await slots.inspect()).holders;
    expect(await slots.forceUnlock({ holder: seen?.id })).toBe(1);
    expect((await slots.inspect()).holders).toMatchObject([{ id: kept?.id }]);
  });

  it("others see a leader, and the next candidate follows it", async () => {
    const [one, other] = pair();
    const term = await one.election("scheduler").campaign({ value: "here" });
    expect(await other.election("scheduler").leader()).toMatchObject({ id: one.id, value: "here" });
    const next = other.election("scheduler").campaign({ value: "there" });
    await term.resign();
    expect((await next).token).toBeGreaterThan(term.token);
  });

  it("remember runs one body, and gives its value to callers that wait or come later", async () => {
    const [one, other] = pair();
    const { run, ran } = await running(one, "token", { label: "refresh" });
    const waiting = other.remember("token", { keep: 60_000 }, () => "twice");
    await until(async () => (await one.list({ kind: "remember" }).next()).value?.waiters?.length === 1);
    ran({ value: 1 });
    const made = { value: { value: 1 }, token: run.token };
    expect(await waiting).toMatchObject({ ...made, ran: false });
    expect(await other.remembered("token")).toMatchObject(made);
    await one.test.advance(59_000);
    expect(await other.remember("token", { keep: 60_000 }, () => "early")).toMatchObject(made);
    await one.test.advance(2_000);
    expect(await one.remembered("token")).toBeNull();
    expect(await other.remember("token", { keep: 60_000 }, () => "late")).toMatchObject({ value: "late" });
    expect([await one.forget("token"), await one.forget("token")]).toEqual([true, false]);
  });

  it("a run that is stopped has lost, and the first waiter runs", async () => {
    const [one, other] = pair();
    const { ended } = await running(one, "token");
    const waiting = other.remember("token", { keep: 60_000 }, () => "next");
    await until(async () => (await one.list({ kind: "remember" }).next()).value?.waiters?.length === 1);
    expect(await other.stopRun("token", { label: "alice" })).toBe(true);
    expect(await waiting).toMatchObject({ value: "next", ran: true });
    expect(await ended).toMatchObject({ code: "LOCK_LOST", reason: "revoked", by: "alice" });
    expect(await other.stopRun("token")).toBe(false);
  });

  it("once runs one body per interval", async () => {
    const [one, other] = pair();
    expect(await one.runOnce("report", { every: 60_000 }, () => "done")).toEqual({
      ran: true,
      value: "done",
    });
    expect(await other.runOnce("report", { every: 60_000 }, () => "twice")).toMatchObject({ ran: false });
  });

  it("a multi-lock is all or none", async () => {
    const [one, other] = pair();
    await one.multiLock(["a", "b"]).withLock(async () => {
      expect(await other.multiLock(["b", "c"]).tryLock()).toBe(null);
      expect((await other.lock("c").tryLock())?.held).toBe(true);
    });
  });

  it("a cached lock is released when another client wants it", async () => {
    const one = createTestLocks({ linger: 1_000 });
    const other = one.test.another();
    open.push(one, other);
    for (let turn = 0; turn < 3; turn++) await one.lock("orders").withLock(() => {});
    await other.lock("orders").withLock({ wait: 500 }, () => {});
  });

  it("list() and check() see it", async () => {
    const [one] = pair();
    await one.lock("orders").lock();
    const seen = [];
    for await (const { kind, name } of one.list({ match: "ord*" })) seen.push([kind, name]);
    expect(seen).toEqual([["lock", "orders"]]);
    expect(await one.check()).toMatchObject({ ok: true, problems: [] });
  });
});

it("the first tryLock and unlock of a client cost four commands, each answered in the next turns", async () => {
  const network = new TestNetwork();
  const run = vi.spyOn(network.redis, "run");
  const [evalsha, evaluate] = [vi.spyOn(network.redis, "evalsha"), vi.spyOn(network.redis, "eval")];
  const locks = new TestClient(network, new Set(), {});
  open.push(locks);
  let turns = 0;
  const turn = (): void => {
    turns++;
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  const lease = await locks.lock("orders").tryLock();
  await lease?.unlock();
  clearImmediate(next);
  // Each script is unknown to a new Redis, and is sent again as text.
  expect([evalsha, evaluate, run].map(({ mock }) => mock.calls.length)).toEqual([2, 2, 2]);
  expect(turns).toBeLessThanOrEqual(6);
});

describe("in a test", () => {
  it("busy: another holder has it, until that is undone", async () => {
    const [one] = pair();
    const busy = await one.test.busy("orders");
    const waits = one.lock("orders").lock({ wait: 20 });
    await expect(waits).rejects.toThrow(LockTimeoutError);
    await expect(one.test.busy("orders")).rejects.toThrow("held already");
    await expect(one.test.busy("orders", "semaphore" as "lock")).rejects.toThrow("kind must be one of lock,");
    await busy.undo();
    expect((await one.lock("orders").tryLock())?.held).toBe(true);
  });

  it("busy: the lock of clients with a prefix", async () => {
    const [one, other] = pair({ prefix: "app:" });
    await using _ = await one.test.busy("orders");
    expect(await other.lock("orders").tryLock()).toBe(null);
  });

  it.each(["lose", "expire"] as const)(
    "%s: the holder is notified at once, and the next caller gets it",
    async (how) => {
      const [one, other] = pair();
      const lease = await one.lock("orders").lock();
      const next = other.lock("orders").lock({ wait: 10_000 });
      const lost = one.test[how]("orders");
      expect([lease.held, lease.signal.aborted, await lost]).toEqual([false, true, 1]);
      expect(lease.signal.reason).toBeInstanceOf(LockLostError);
      expect(lease.signal.reason).toMatchObject({ reason: how === "lose" ? "gone" : "expired" });
      expect((await next).token).toBeGreaterThan(lease.token);
    },
  );

  it.each(["lose", "expire"] as const)(
    "%s: after advance(0) the lock is free for a caller that tries once",
    async (how) => {
      const [one, other] = pair();
      await one.lock("orders").lock();
      await one.test[how]("orders");
      await one.test.advance(0);
      expect(await other.lock("orders").tryLock()).not.toBeNull();
    },
  );

  it("lose: waits for a lock that is about to be held, and reports one that is not held", async () => {
    const [one] = pair();
    const body = delay(20).then(() =>
      one.lock("orders").withLock(({ signal }) => delay(10_000, null, { signal })),
    );
    const rejected = expect(body).rejects.toThrow(LockLostError);
    expect(await one.test.lose("orders")).toBe(1);
    await rejected;
    await one.lock("other").lock();
    await expect(one.test.lose("nobody's")).rejects.toThrow("no caller holds it; what is held: 'other'");
  });

  it("fake timers do not reach it: callers of all kinds get their turn, time is that of advance(), and close() ends", async () => {
    // Jest replaces queueMicrotask too.
    const toFake = ["Date", "performance", "queueMicrotask", "setImmediate", "setInterval", "setTimeout"];
    vi.useFakeTimers({ now: 0, toFake: toFake as ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const [one, other] = pair({ linger: 100 });
    const lease = await one.lock("orders").lock({ lease: 5_000 });
    const late = expect(other.lock("orders").lock({ wait: 4_000 })).rejects.toThrow(LockTimeoutError);
    const slots = [1, 2, 3].map(() => one.semaphore("slots", { permits: 2 }).withPermits(() => {}));
    const locksOf = [one, other].map((locks) => locks.readWriteLock("config"));
    await Promise.all([
      ...slots,
      ...locksOf.flatMap(({ read, write }) => [read, write, read].map((lock) => lock.withLock(() => {}))),
    ]);
    vi.setSystemTime(7_200_000);
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect(lease.held).toBe(true);
    await one.test.advance(5_000);
    await late;
    expect(lease.held).toBe(false);
    await other.lock("orders").lock();
    const errors: unknown[] = [];
    other.on("error", (error) => errors.push(error));
    await Promise.all([one.close({ grace: 50 }), other.close({ grace: 50 })]);
    expect(errors).toMatchObject([{ code: "LOCK_LEFT_BEHIND" }]);
  });

  it("advance: leases run out, and waits too", async () => {
    const [one, other] = pair();
    const lease = await one.lock("orders").lock({ lease: 5_000 });
    const late = expect(other.lock("orders").lock({ wait: 4_000 })).rejects.toThrow(LockTimeoutError);
    const next = other.lock("orders").lock({ wait: 60_000 });
    await one.test.advance(4_000);
    await late;
    expect(lease.held).toBe(true);
    await one.test.advance(1_000);
    expect([lease.held, lease.signal.aborted]).toEqual([false, true]);
    await one.test.advance(2_000);
    expect((await next).held).toBe(true);
  });

  it("advance: renewed leases stay, in Redis's place too", async () => {
    const [one, other] = pair();
    const lease = await one.lock("orders").lock();
    const term = await one.election("scheduler").campaign({ value: "here" });
    await one.test.advance(3_600_000);
    expect([lease.held, term.signal.aborted, await other.lock("orders").tryLock()]).toEqual([
      true,
      false,
      null,
    ]);
  });

  it("advance: no command looks unanswered, whenever it was sent and however far the clock is moved", async () => {
    const sweeps = vi.spyOn(Unanswered.prototype, "giveUp");
    onTestFinished(() => sweeps.mockRestore());
    const [one, other] = pair();
    const stranger = createTestLocks();
    open.push(stranger);
    const errors: unknown[] = [];
    for (const locks of [one, other, stranger]) locks.on("error", (error) => errors.push(error));
    const callers = [one, other, stranger].map(async (locks) => {
      for (let round = 0; round < 20; round++) {
        await locks.lock("orders").withLock({ lease: 3_600_000 }, () => {});
        await locks.semaphore("slots", { permits: 1 }).withPermits({ lease: 3_600_000 }, () => {});
        await nextTurn();
      }
    });
    let isOver = false;
    const all = Promise.all(callers).finally(() => {
      isOver = true;
    });
    while (!isOver) await Promise.all([one.test.advance(60_000), other.test.advance(10_000), nextTurn()]);
    await all;
    const lock = one.lock("orders").lock();
    await one.test.advance(3_600_000);
    const { length } = sweeps.mock.calls;
    await until(() => sweeps.mock.calls.length > length, { what: "a check for unanswered commands" });
    expect((await lock).held).toBe(true);
    expect(errors).toEqual([]);
  });

  it("advance: a leader that has lost its term leads again after its pause", async () => {
    const [one] = pair();
    const stop = new AbortController();
    let terms = 0;
    const leads = one.election("scheduler").runAsLeader({ signal: stop.signal }, async (term) => {
      terms++;
      await delay(60_000, null, { signal: term.signal });
    });
    for (const times of [1, 2, 3]) {
      await one.test.lose("scheduler");
      await one.test.advance(0);
      expect(terms).toBe(times);
      await one.test.advance(1_000);
      expect(terms).toBe(times + 1);
    }
    stop.abort();
    expect(await leads).toEqual({ terms: 4, value: undefined });
  });

  it("advance: an interval goes by", async () => {
    const [one, other] = pair();
    await one.runOnce("report", { every: 60_000 }, () => {});
    await one.test.advance(59_000);
    expect(await other.runOnce("report", { every: 60_000 }, () => {})).toMatchObject({ ran: false });
    await one.test.advance(1_000);
    expect(await other.runOnce("report", { every: 60_000 }, () => {})).toMatchObject({ ran: true });
    await expect(one.test.advance(-1)).rejects.toThrow(RangeError);
  });
});

describe("callers that wait for each other", () => {
  let warnings: unknown[] = [];
  const warned = (warning: Error & { code?: string }): void => void warnings.push(warning.code);
  beforeEach(() => {
    warnings = [];
    process.on("warning", warned);
  });
  afterEach(() => void process.off("warning", warned));

  /** A body that holds the first lock, and wants the second: its value, or its error's code. */
  const chain = (locks: LockClient, first: string, second: string, signal?: AbortSignal): Promise<string> =>
    locks
      .lock(first)
      .withLock(() => locks.lock(second).withLock({ signal }, () => "both"))
      .catch(({ code, message }: DeadlockError) => code ?? message);

  /** What was told of circles. */
  function listen(...all: LockClient[]): { rejected: boolean; cycle: string[] }[] {
    const told: { rejected: boolean; cycle: string[] }[] = [];
    for (const locks of all)
      locks.on("deadlock", ({ rejected, cycle }) =>
        told.push({ rejected, cycle: cycle.map(({ name }) => name).sort() }),
      );
    return told;
  }

  it("reject: one caller is rejected, and the others go on", async () => {
    const [one, other] = pair({ deadlocks: "reject" });
    const third = one.test.another();
    open.push(third);
    const told = listen(one, other, third);
    const ended = Promise.all([chain(one, "a", "b"), chain(other, "b", "c"), chain(third, "c", "a")]);
    await one.test.advance(4_900);
    expect(told).toEqual([]);
    await one.test.advance(10_000);
    expect((await ended).sort()).toEqual(["DEADLOCK", "both", "both"]);
    expect(told).toEqual([{ rejected: true, cycle: ["a", "b", "c"] }]);
  });

  it.each(["warn", "off"] as const)("%s: all wait on", async (deadlocks) => {
    const [one, other] = pair({ deadlocks });
    const told = listen(one, other);
    const enough = new AbortController();
    const ended = Promise.all([chain(one, "a", "b", enough.signal), chain(other, "b", "a", enough.signal)]);
    // Less than a lease: then callers are warned that their own process has what they wait for.
    await one.test.advance(25_000);
    const circle = { rejected: false, cycle: ["a", "b"] };
    expect(told).toEqual(deadlocks === "warn" ? [circle, circle] : []);
    expect(warnings).toEqual(deadlocks === "warn" ? ["DEADLOCK", "DEADLOCK"] : []);
    enough.abort(new Error("enough"));
    expect(await ended).toEqual(["enough", "enough"]);
  });

  it("a chain with an end is no deadlock, and one through a semaphore only warns", async () => {
    const [one, other] = pair({ deadlocks: "reject" });
    const told = listen(one, other);
    const enough = new AbortController();
    const { signal } = enough;
    const lease = await other.lock("c").lock();
    const line = Promise.all([chain(one, "a", "b"), chain(other, "b", "c")]);
    const slots = (locks: LockClient) => locks.semaphore("slots", { permits: 1 });
    const round = Promise.allSettled([
      one.lock("d").withLock(() => slots(one).withPermits({ signal }, () => {})),
      slots(other).withPermits(() => other.lock("d").withLock({ signal }, () => {})),
    ]);
    await one.test.advance(20_000);
    expect(told).toEqual(Array.from({ length: 2 }, () => ({ rejected: false, cycle: ["d", "slots"] })));
    await lease.unlock();
    enough.abort();
    expect(await line).toEqual(["both", "both"]);
    await round;
  });
});

it("the option process says where a client seems to run", async () => {
  const [one, other] = pair({ process: "web-1:2041", label: "shop" });
  await one.lock("orders").lock();
  const seen = await other.lock("orders").inspect();
  expect(seen.holder).toMatchObject({ host: "web-1", pid: 2041, label: "shop" });
  expect(other.id).toContain(`:${process.pid}:`);
  for (const bad of ["web-1", "web 1:2", "web-1:0", ":1", 7])
    expect(() => createTestLocks({ process: bad as string })).toThrow(/process must be a host and/);
});

it.each(["replicas", "replicaTimeout", "connection"])(
  "the option %s, which means nothing without a Redis, is refused",
  (name) => {
    const options = { [name]: name === "connection" ? "own" : 1_000 };
    expect(() => createTestLocks(options as never)).toThrow(
      new TypeError(`Cannot create test locks: ${name} has no meaning without a Redis`),
    );
  },
);
