import { AsyncLocalStorage } from "node:async_hooks";
import { tracingChannel } from "node:diagnostics_channel";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { redissonLock } from "../../src/redisson.ts";
import { spinLock } from "../../src/spin.ts";
import { failure } from "../contract/observe.ts";
import { block } from "../support/block.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { Gauges } from "../support/gauges.ts";
import { until } from "../support/until.ts";
import { watchPoint, watchTrace } from "./channel-watch.ts";

// What is told to whatever observes the process, by node:diagnostics_channel (docs/events.md).

const parties = new Parties();
afterAll(parties.close);

const ACQUIRE = "holdfast:acquire";
const HOLD = "holdfast:hold";
const DONE = ["start", "end", "asyncStart", "asyncEnd"];
const FAILED = ["start", "end", "error", "asyncStart", "asyncEnd"];
const number = expect.any(Number);

describe("a call is followed", () => {
  it("from its line to the lock, and from there to the lock's end", async () => {
    const { locks } = await parties.join();
    const { id: client } = locks;
    const acquire = watchTrace(ACQUIRE, client);
    const hold = watchTrace(HOLD, client);
    const name = freshName();
    const lease = await locks.lock(name).lock({ wait: 1_000 });
    const call = { client, name, kind: "lock", call: 1, lease: 30_000 };
    expect(acquire.steps).toEqual(DONE);
    const { token } = lease;
    expect(acquire.ended).toEqual([
      { ...call, wait: 1_000, outcome: "acquired", waitedFor: number, token, passed: false },
    ]);
    expect(hold.steps).toEqual(["start", "end"]);
    await lease.unlock();
    expect(hold.steps).toEqual(DONE);
    expect(hold.ended).toEqual([{ ...call, token, around: null, heldFor: number }]);
  });

  it("to its failure: busy, out of time, aborted, refused by an ended client", async () => {
    const { locks } = await parties.join();
    const { locks: others } = await parties.join();
    const acquire = watchTrace(ACQUIRE, others.id);
    const hold = watchTrace(HOLD, others.id);
    const name = freshName();
    await using _ = await locks.lock(name).lock();
    const lock = others.lock(name);
    expect(await lock.tryLock()).toBeNull();
    expect(await failure(lock.lock({ wait: 20 }))).toMatchObject({ code: "LOCK_TIMEOUT" });
    await failure(lock.lock({ signal: AbortSignal.abort("enough") }));
    await others.close();
    const closed = await failure(lock.lock());
    expect(acquire.ended).toMatchObject([
      { wait: 0, outcome: "busy", waitedFor: number },
      { wait: 20, outcome: "timeout", waitedFor: number },
      { outcome: "aborted", error: "enough" },
      { outcome: "closed", error: closed },
    ]);
    expect(acquire.steps).toEqual([...DONE, ...DONE, ...FAILED, ...FAILED]);
    expect(hold.steps).toEqual([]);
  });

  it("through a loss, which ends the hold once", async () => {
    const { locks, redis } = await parties.join({ client: { leaseTime: 1_000 } });
    const hold = watchTrace(HOLD, locks.id);
    const lost = watchPoint("holdfast:lost", locks.id);
    const name = freshName();
    const { signal } = await locks.lock(name).lock();
    await locks.lock(name).forceUnlock();
    await until(() => signal.aborted);
    expect(hold.steps).toEqual(FAILED);
    expect(hold.ended).toMatchObject([{ name, error: signal.reason }]);
    // Found by its release only: that ends the hold, and the loss is told after it. No renewal
    // finds it before.
    const lease = await locks.lock(name).lock({ lease: 30_000 });
    await redis.del(`holdfast:{${name}}`);
    expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST" });
    expect(hold.steps).toEqual([...FAILED, ...DONE]);
    expect(lost).toMatchObject([
      { client: locks.id, name, error: signal.reason },
      { name, call: 2 },
    ]);
  });

  it("through a scope that ends a lease: the hold ends with the last one, and fails if the scope ended it", async () => {
    const { locks } = await parties.join();
    const errors: Error[] = [];
    locks.on("error", (error) => errors.push(error));
    const hold = watchTrace(HOLD, locks.id);
    const lost = watchPoint("holdfast:lost", locks.id);
    const lock = locks.lock(freshName());
    const census = new Gauges(locks);
    await lock.withLock(async () => {
      await locks.scope(() => lock.lock());
      expect([hold.steps, census.holders]).toEqual([["start", "end"], 1]);
      expect(lost).toMatchObject([{ call: 1, remains: true, error: { reason: "scope" } }]);
    });
    expect(hold.steps).toEqual(DONE);
    await locks.scope(() => lock.lock());
    expect(hold.steps).toEqual([...DONE, ...FAILED]);
    expect(lost).toMatchObject([{ call: 1 }, { call: 2, error: hold.ended[1]?.error }]);
    expect([errors.length, census.holders, census.surprises]).toEqual([2, 0, []]);
  });

  it("of every kind of lock", async () => {
    const { locks } = await parties.join();
    const acquire = watchTrace(ACQUIRE, locks.id);
    const hold = watchTrace(HOLD, locks.id);
    const name = freshName();
    const both = [freshName("a"), freshName("b")].sort();
    await locks.fairLock(name).withLock(() => {});
    await spinLock(locks, name).withLock(() => {});
    await redissonLock(locks, freshName()).withLock(() => {});
    await locks.semaphore(name, { permits: 3 }).withPermits(2, () => {});
    await locks.readWriteLock(name).write.withLock(() => locks.readWriteLock(name).read.withLock(() => {}));
    await locks.readWriteLock(name).read.withLock(() => {});
    await locks.multiLock(both).withLock(() => {});
    await locks.runOnce(name, { every: 60_000 }, () => {});
    await locks.runOnce(name, { every: 60_000 }, () => {});
    const term = await locks.election(name).campaign({ value: "here" });
    await term.resign();
    for (let i = 0; i < 2; i++) await locks.remember(name, { keep: 60_000 }, () => "a secret");
    const kinds = ["fair", "spin", "redisson", "semaphore", "write", "read", "multi", "once"];
    expect(acquire.ended.map(({ kind }) => kind)).toEqual([
      ...kinds,
      ...["once", "election", "remember", "remember"],
    ]);
    expect(acquire.ended.map(({ outcome }) => outcome)).toEqual([
      ...kinds.map(() => "acquired"),
      ...["busy", "acquired", "acquired", "served"],
    ]);
    expect(JSON.stringify([acquire.ended, hold.ended])).not.toContain("a secret");
    kinds.splice(kinds.indexOf("multi"), 0, "multi");
    expect(hold.ended.map(({ kind }) => kind)).toEqual([...kinds, "election", "remember"]);
    expect(hold.ended.filter(({ kind }) => kind === "multi").map(({ name }) => name)).toEqual(both);
    expect(hold.ended.find(({ kind }) => kind === "semaphore")).toMatchObject({ units: 2 });
  });

  it("in the context of its caller, also after a wait, and its body in the context that a subscriber has bound", async () => {
    const { locks } = await parties.join();
    const callers = new AsyncLocalStorage<string>();
    const bound = new AsyncLocalStorage<string>();
    const seen: string[] = [];
    const note = (where: string) => (): void => void seen.push(`${where} ${callers.getStore()}`);
    watchTrace(ACQUIRE, locks.id, { start: note("asks"), asyncEnd: note("has") });
    watchTrace(HOLD, locks.id, { start: note("holds"), asyncEnd: note("ends") });
    const { start } = tracingChannel<unknown, object>(HOLD);
    start.bindStore(bound, () => "the hold");
    onTestFinished(() => void start.unbindStore(bound));
    const lock = locks.lock(freshName());
    const first = await lock.lock();
    seen.length = 0;
    const waiting = callers.run("first", () =>
      lock.withLock(async () => {
        seen.push(`body ${callers.getStore()}, ${bound.getStore()}`);
        // A borrower is part of the hold: it stays where it is, and enters what its scope holds.
        await callers.run("inner", () =>
          lock.withLock(() => seen.push(`borrower ${callers.getStore()}, ${bound.getStore()}`)),
        );
      }),
    );
    await callers.run("second", () => first.unlock());
    await waiting;
    expect(seen).toEqual([
      "asks first",
      "ends undefined",
      "has first",
      "holds first",
      "body first, the hold",
      "borrower inner, the hold",
      "ends first",
    ]);
    expect(bound.getStore()).toBeUndefined();
  });

  it("by a subscriber that comes late, from the next call on, and by none that has left", async () => {
    const { locks } = await parties.join();
    const lock = locks.lock(freshName());
    const lease = await lock.lock();
    const waiting = lock.lock();
    const acquire = watchTrace(ACQUIRE, locks.id);
    const hold = watchTrace(HOLD, locks.id);
    const later = lock.lock();
    await lease.unlock();
    const second = await waiting;
    await second.unlock();
    const third = await later;
    await third.unlock();
    // The tokens of passes count up by 1; those that Redis gives are times.
    expect(acquire.ended).toMatchObject([{ call: 3, passed: third.token === second.token + 1 }]);
    expect(hold.ended).toMatchObject([{ call: 3 }]);
    acquire.stop();
    hold.stop();
    await lock.withLock(() => {});
    expect(acquire.ended.length + hold.ended.length).toBe(2);
  });
});

describe("a point channel publishes", () => {
  it("what the event of its name contains, also without a listener of that event", async () => {
    const { locks } = await parties.join({ client: { leaseTime: 1_000 } });
    const client = locks.id;
    const [giveup, renew] = [watchPoint("holdfast:giveup", client), watchPoint("holdfast:renew", client)];
    const name = freshName();
    const lease = await locks.lock(name).lock();
    expect(await locks.lock(name).tryLock()).toBeNull();
    await until(() => renew.length > 0);
    await lease.unlock();
    const { token } = lease;
    const kind = "lock";
    expect(giveup).toEqual([{ client, name, kind, call: 2, waitedFor: number, why: "busy" }]);
    expect(renew[0]).toEqual({ client, name, kind, call: 1, token, remaining: number });
  });

  it("that another caller wants a cached lock", async () => {
    const { locks } = await parties.join({ client: { linger: 1_000 } });
    const { locks: others } = await parties.join();
    const recall = watchPoint("holdfast:recall", locks.id);
    const name = freshName();
    const lock = locks.lock(name);
    await until(async () => {
      await lock.withLock(() => {});
      return locks.stats().kept > 0;
    });
    await others.lock(name).withLock(() => {});
    expect(recall).toEqual([{ client: locks.id, name, kind: "lock", idle: number, uses: number }]);
  });

  it("a renewal that failed, with the error, which remains in the client's events too", async () => {
    const { locks, redis } = await parties.join({ client: { leaseTime: 1_000 } });
    const renew = watchPoint("holdfast:renew", locks.id);
    const errors: Error[] = [];
    locks.on("error", (error) => errors.push(error));
    const name = freshName();
    const lease = await locks.lock(name).lock();
    redis.disconnect();
    await until(() => renew.some(({ error }) => error));
    expect(renew.find(({ error }) => error)).toEqual({
      client: locks.id,
      name,
      kind: "lock",
      call: 1,
      token: lease.token,
      remaining: number,
      error: errors[0],
    });
  });

  it("a blocked event loop, if for more than a third of a lease, once", async () => {
    const { locks } = await parties.join({ client: { leaseTime: 2_000 } });
    const stall = watchPoint("holdfast:stall", locks.id);
    const renew = watchPoint("holdfast:renew", locks.id);
    const since = performance.now();
    const lease = await locks.lock(freshName()).lock();
    await using other = await locks.lock(freshName()).lock({ lease: 60_000 });
    await until(() => renew.length > 1);
    stall.length = 0;
    const renewed = renew.length;
    block(1_600);
    await until(() => stall.length > 0);
    expect(stall).toEqual([{ client: locks.id, late: number, leases: 1 }]);
    // It is not told again. A busy machine may end the lease before it is renewed.
    await until(() => renew.length > renewed + 1 || lease.signal.aborted);
    // Whatever else was told, the machine did meanwhile.
    for (const { late } of stall) expect(late).toBeGreaterThan(666);
    const late = stall.reduce((sum, one) => sum + Number(one.late), 0);
    expect(late).toBeLessThan(performance.now() - since);
    expect(other.held).toBe(true);
  });
});
