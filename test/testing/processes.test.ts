import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import {
  ClientClosedError,
  LockError,
  LockLostError,
  LockUnavailableError,
  type UnfencedLease,
} from "../../src/index.ts";
import type { TestLocks, TestLocksOptions, Undoable } from "../../src/tools/testing/index.ts";
import { TestClients } from "../support/test-clients.ts";
import { until } from "../support/until.ts";

const open = new TestClients();
const pair = (options?: TestLocksOptions) => open.pair(options);

/** Work that lasts until its signal aborts. */
const work = (signal: AbortSignal): Promise<unknown> => delay(3_600_000, null, { signal });

/** How many callers wait for a lock. */
const waitersOf = async (locks: TestLocks, name: string): Promise<number> =>
  (await locks.lock(name).inspect()).waiters?.length ?? 0;

const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await nextTurn();
};

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve());
  });

/** Numbers from 0 to 1, the same ones for each seed. */
function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

describe("crash", () => {
  it("the body's signal aborts, withLock rejects, and another client gets the lock after the lease only", async () => {
    const [one, other] = pair();
    let signal: AbortSignal | undefined;
    const body = one.lock("orders").withLock({ lease: 10_000 }, (lease) => {
      signal = lease.signal;
      return work(lease.signal);
    });
    const rejected = expect(body).rejects.toMatchObject({ code: "LOCK_LOST", reason: "closed" });
    await one.test.advance(0);
    const next = other.lock("orders").lock({ wait: 60_000 });
    await one.test.crash();
    await rejected;
    expect(signal?.aborted).toBe(true);
    await other.test.advance(9_000);
    expect(await other.lock("orders").tryLock()).toBeNull();
    await other.test.advance(3_000);
    expect((await next).held).toBe(true);
  });

  it("a lease is not renewed any more", async () => {
    const [one, other] = pair();
    await one.lock("orders").lock();
    await one.test.crash();
    await other.test.advance(31_000);
    expect((await other.lock("orders").tryLock())?.held).toBe(true);
  });

  it("calls that wait reject with ClientClosedError, and so do later ones", async () => {
    const [one, other] = pair();
    await using _ = await other.test.busy("orders");
    await other.runOnce("report", { every: 60_000 }, () => {});
    const calls = [
      one.lock("orders").lock({ wait: 60_000 }),
      one.election("leader").runAsLeader({}, ({ signal }) => work(signal)),
      one.semaphore("slots", { permits: 1 }).withPermits(() => one.lock("orders").lock()),
      one.remember("token", { keep: 1_000 }, ({ signal }) => work(signal)),
    ];
    const outcomes = Promise.allSettled(calls);
    await one.test.advance(0);
    await one.test.crash();
    for (const outcome of await outcomes)
      expect(outcome).toMatchObject({ reason: { code: expect.stringMatching("CLIENT_CLOSED|LOCK_LOST") } });
    expect(await outcomes).toMatchObject([{ reason: { code: "CLIENT_CLOSED" } }, {}, {}, {}]);
    await expect(one.lock("free").tryLock()).rejects.toThrow(ClientClosedError);
    await expect(one.test.crash()).rejects.toThrow(ClientClosedError);
    await expect(one.test.pause()).rejects.toThrow(ClientClosedError);
    await expect(one.test.cut()).rejects.toThrow(ClientClosedError);
    expect(() => one.test.latency(1)).toThrow(ClientClosedError);
    await one.close();
  });

  it("a command under way rejects", async () => {
    const [one] = pair();
    const inspected = expect(one.lock("orders").inspect()).rejects.toThrow(LockUnavailableError);
    await one.test.crash();
    await inspected;
  });

  it("elections move on", async () => {
    const [one, other] = pair();
    await one.election("leader").campaign({ value: "one" });
    const next = other.election("leader").campaign({ value: "other" });
    await one.test.crash();
    await other.test.advance(40_000);
    expect((await next).signal.aborted).toBe(false);
    expect(await other.election("leader").leader()).toMatchObject({ value: "other" });
  });

  it("a runOnce that dies with its process runs elsewhere after its lease", async () => {
    const [one, other] = pair();
    const ran = one.runOnce("report", { every: 3_600_000 }, ({ signal }) => work(signal));
    const rejected = expect(ran).rejects.toThrow(LockLostError);
    await one.test.advance(0);
    await one.test.crash();
    await rejected;
    expect(await other.runOnce("report", { every: 3_600_000 }, () => "early")).toMatchObject({ ran: false });
    await other.test.advance(40_000);
    expect(await other.runOnce("report", { every: 3_600_000 }, () => "late")).toMatchObject({
      value: "late",
    });
  });

  it("a waiter that dies leaves the queue to the next one", async () => {
    const [one, other] = pair();
    const third = one.test.another();
    open.push(third);
    const lease = await third.lock("orders").lock();
    const dead = expect(one.lock("orders").lock({ wait: 60_000 })).rejects.toThrow(ClientClosedError);
    await until(async () => (await waitersOf(third, "orders")) === 1);
    const next = other.lock("orders").lock({ wait: 60_000 });
    await until(async () => (await waitersOf(third, "orders")) === 2);
    await one.test.crash();
    await dead;
    await lease.unlock();
    expect((await next).held).toBe(true);
  });

  it("while it is paused and cut off: it ends, and undo does nothing", async () => {
    const [one, other] = pair();
    const lease = await one.lock("orders").lock();
    const [pause, cut] = [await one.test.pause(), await one.test.cut()];
    await one.test.crash();
    expect([lease.held, lease.signal.aborted]).toEqual([false, true]);
    await Promise.all([pause.undo(), cut.undo(), cut.undo()]);
    await other.test.advance(31_000);
    expect((await other.lock("orders").tryLock())?.held).toBe(true);
  });
});

describe("pause", () => {
  it("others get the lock after the lease; after undo the body's signal aborts, and withLock rejects: expired", async () => {
    const [one, other] = pair();
    let signal: AbortSignal | undefined;
    const body = one.lock("orders").withLock((lease) => {
      signal = lease.signal;
      return work(lease.signal);
    });
    const rejected = expect(body).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    await one.test.advance(60_000);
    const next = other.lock("orders").lock({ wait: 60_000 });
    const pause = await one.test.pause();
    await other.test.advance(35_000);
    expect((await next).held).toBe(true);
    // No timer of it has rung.
    expect(signal?.aborted).toBe(false);
    await pause.undo();
    expect(signal?.aborted).toBe(true);
    await rejected;
    expect((await next).held).toBe(true);
  });

  it("shorter than the lease it costs nothing: the lease is renewed again", async () => {
    const [one, other] = pair();
    const lease = await one.lock("orders").lock();
    const pause = await one.test.pause();
    await other.test.advance(25_000);
    await pause.undo();
    await one.test.advance(120_000);
    expect(lease.held).toBe(true);
    expect(await other.lock("orders").tryLock()).toBeNull();
  });

  it("a grant that came meanwhile counts after undo, though the wait is over by then", async () => {
    const [one, other] = pair();
    const lease = await other.lock("orders").lock();
    const next = one.lock("orders").lock({ wait: 2_000 });
    await until(async () => (await waitersOf(other, "orders")) === 1);
    const pause = await one.test.pause();
    await lease.unlock();
    await other.test.advance(2_500);
    await pause.undo();
    expect((await next).held).toBe(true);
  });

  it("commands that its code sends meanwhile leave it after undo, and are not late", async () => {
    const [one, other] = pair();
    const errors: unknown[] = [];
    one.on("error", (error) => errors.push(error));
    const pause = await one.test.pause();
    const lease = one.lock("orders").lock({ wait: 60_000 });
    await other.test.advance(10_000);
    expect((await other.lock("orders").inspect()).holder).toBeNull();
    await pause.undo();
    expect((await lease).held).toBe(true);
    expect(errors).toEqual([]);
  });

  it("a leader that is paused is replaced, and learns it", async () => {
    const [one, other] = pair();
    const term = await one.election("leader").campaign({ value: "one" });
    const next = other.election("leader").campaign({ value: "other" });
    await using _ = await one.test.pause();
    await other.test.advance(40_000);
    expect((await next).token).toBeGreaterThan(term.token);
    expect(await other.election("leader").leader()).toMatchObject({ value: "other" });
    await _.undo();
    expect(term.signal.reason).toMatchObject({ reason: "expired" });
  });

  it("after two calls both are undone, and a second undo does nothing", async () => {
    const [one, other] = pair();
    const [first, second] = [await one.test.pause(), await one.test.pause()];
    await Promise.all([first.undo(), first.undo()]);
    const lease = one.lock("orders").tryLock();
    await other.test.advance(1_000);
    expect((await other.lock("orders").inspect()).holder).toBeNull();
    await second.undo();
    expect((await lease)?.held).toBe(true);
  });

  it("close() ends it, and releases what is held", async () => {
    const [one, other] = pair();
    const lease = await one.lock("orders").lock();
    const pause = await one.test.pause();
    await one.close({ grace: 0 });
    await pause.undo();
    expect(lease.held).toBe(false);
    expect((await other.lock("orders").tryLock())?.held).toBe(true);
  });
});

describe("cut", () => {
  it("callers get LockUnavailableError, and a lease that cannot be renewed is lost", async () => {
    const [one, other] = pair();
    const body = one.lock("orders").withLock(({ signal }) => work(signal));
    const rejected = expect(body).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    await one.test.advance(0);
    await one.test.cut();
    const calls = [one.lock("other").tryLock(), one.lock("other").lock({ wait: 3_000 })];
    const refused = Promise.all(calls.map((call) => expect(call).rejects.toThrow(LockUnavailableError)));
    await other.test.advance(31_000);
    await Promise.all([rejected, refused]);
    expect((await other.lock("orders").tryLock())?.held).toBe(true);
  });

  it("after undo it reconnects by itself: a lease is renewed again, and a waiter gets its lock", async () => {
    const [one, other] = pair();
    const lease = await one.lock("orders").lock();
    const busy = await other.test.busy("other");
    const next = one.lock("other").lock({ wait: 120_000 });
    await until(async () => (await waitersOf(other, "other")) === 1);
    await using cut = await one.test.cut();
    await busy.undo();
    await other.test.advance(20_000);
    await cut.undo();
    await other.test.advance(60_000);
    expect([lease.held, (await next).held]).toEqual([true, true]);
    expect(await other.lock("orders").tryLock()).toBeNull();
  });

  it("messages reach it again: a hand-off needs no advance", async () => {
    const [one, other] = pair();
    await one.lock("warm").withLock({ wait: 1_000 }, () => {});
    for (let round = 0; round < 3; round++) {
      const lease = await other.lock("orders").lock();
      const cut = await one.test.cut();
      await cut.undo();
      const next = one.lock("orders").lock({ wait: 60_000 });
      await until(async () => (await waitersOf(other, "orders")) === 1);
      await lease.unlock();
      await (await next).unlock();
    }
  });

  it("while it is paused it learns of that after the pause", async () => {
    const [one, other] = pair();
    const lease = await one.lock("orders").lock();
    const pause = await one.test.pause();
    const cut = await one.test.cut();
    await other.test.advance(5_000);
    await pause.undo();
    const pending = one.lock("next").lock({ wait: 60_000 });
    await other.test.advance(2_000);
    expect((await other.lock("next").inspect()).holder).toBeNull();
    await cut.undo();
    expect((await pending).held).toBe(true);
    await one.test.advance(60_000);
    expect(lease.held).toBe(true);
  });

  it("mended while it is paused, and cut again, it goes on at the end", async () => {
    const [one, other] = pair();
    const pause = await one.test.pause();
    await (await one.test.cut()).undo();
    const again = await one.test.cut();
    await pause.undo();
    const lease = one.lock("orders").lock({ wait: 60_000 });
    await other.test.advance(1_000);
    expect((await other.lock("orders").inspect()).holder).toBeNull();
    await again.undo();
    expect((await lease).held).toBe(true);
  });

  it("close() meanwhile ends after its grace, and a later undo does nothing", async () => {
    const [one, other] = pair();
    await using _ = await other.test.busy("orders");
    const waiting = expect(one.lock("orders").lock({ wait: 60_000 })).rejects.toThrow(ClientClosedError);
    await until(async () => (await waitersOf(other, "orders")) === 1);
    const lease = await one.lock("mine").lock({ lease: 5_000 });
    const cut = await one.test.cut();
    const unlocked = expect(lease.unlock()).rejects.toThrow(LockUnavailableError);
    await one.close({ grace: 50 });
    await waiting;
    await cut.undo();
    await other.test.advance(6_000);
    await unlocked;
    expect((await other.lock("mine").tryLock())?.held).toBe(true);
  });
});

describe("latency", () => {
  it("delays each reply on the lock clock, in order, until it is set to 0", async () => {
    const [one, other] = pair();
    one.test.latency(60_000);
    const order: string[] = [];
    const calls = ["a", "b"].map(async (name) => {
      await one.lock(name).inspect();
      order.push(name);
    });
    await other.test.advance(1_000);
    expect(order).toEqual([]);
    one.test.latency(0);
    await Promise.all(calls);
    expect(order).toEqual(["a", "b"]);
    await expect((async () => one.test.latency(-1))()).rejects.toThrow(RangeError);
  });

  it("advance passes through it: a lock costs its round trips, and a hand-off comes late", async () => {
    const [one, other] = pair({ leaseTime: 60_000 });
    await one.lock("warm").withLock({ wait: 1_000 }, () => {});
    const lease = await other.lock("orders").lock();
    one.test.latency(1_000);
    const next = one.lock("orders").lock({ wait: 30_000 });
    let at = 0;
    void next.then(() => {
      at ||= 1;
    });
    await other.test.advance(5_000);
    await lease.unlock();
    await other.test.advance(900);
    expect(at).toBe(0);
    await other.test.advance(10_000);
    expect([at, (await next).held]).toEqual([1, true]);
  });

  it("longer than a lease it loses the lease", async () => {
    const [one] = pair();
    const lease = await one.lock("orders").lock({ wait: 0 });
    one.test.latency(40_000);
    await one.test.advance(35_000);
    expect(lease.held).toBe(false);
    one.test.latency(0);
  });
});

describe("all of it together", () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8])(
    "in random order: one holder at a time, and every call ends (seed %i)",
    async (seed) => {
      const random = dice(seed);
      const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
      const [first, ...others] = [...pair({ leaseTime: 10_000 })];
      const fleet = [first, ...others, first.test.another()];
      open.push(...fleet.slice(2));
      for (const locks of fleet) locks.on("error", () => {});
      const held = new Set<UnfencedLease>();
      let most = 0;
      let grants = 0;
      let isOver = false;
      const callers = fleet.map(async (locks) => {
        while (!isOver)
          try {
            await locks.lock("orders").withLock({ wait: 5_000 }, async (lease) => {
              held.add(lease);
              grants++;
              most = Math.max(most, [...held].filter((one) => one.held).length);
              await Promise.race([turns(1 + Math.floor(random() * 20)), aborted(lease.signal)]);
              held.delete(lease);
            });
          } catch (error) {
            if (error instanceof ClientClosedError) return;
            if (!(error instanceof LockError)) throw error;
            await turns(1);
          }
      });
      const undos: Undoable[] = [];
      for (let step = 0; step < 60; step++) {
        const { test } = pick(fleet.slice(0, 2));
        const what = pick(["pause", "cut", "latency", "undo", "undo", "advance", "advance"] as const);
        if (what === "latency") test.latency(pick([0, 0, 50, 3_000]));
        else if (what === "advance") await test.advance(pick([0, 100, 4_000, 12_000]));
        else if (what === "undo") await undos.splice(Math.floor(random() * undos.length), 1)[0]?.undo();
        else undos.push(await test[what]());
      }
      await fleet[2]?.test.crash();
      for (const undo of undos) await undo.undo();
      for (const { test } of fleet.slice(0, 2)) test.latency(0);
      const before = grants;
      await first.test.advance(20_000);
      await until(() => grants > before + 5);
      isOver = true;
      await first.test.advance(20_000);
      await Promise.all(callers);
      expect([most, grants > 20]).toEqual([1, true]);
    },
  );
});
