import { afterEach, describe, expect, it } from "vitest";
import { LockLostError, LockTimeoutError } from "../../src/index.ts";
import { createTestLocks, type TestLocks } from "../../src/testing/index.ts";

const open: TestLocks[] = [];

afterEach(async () => {
  for (const locks of open.splice(0)) await locks.close({ grace: 0 });
});

/** Two clients of one memory, as two processes have them. */
function pair(): [TestLocks, TestLocks] {
  const one = createTestLocks();
  const other = one.test.another();
  open.push(one, other);
  return [one, other];
}

describe("locks in memory", () => {
  it.each(["lock", "fairLock", "redissonLock", "redissonFencedLock", "spinLock"] as const)(
    "%s excludes another client, which waits for it",
    async (kind) => {
      const [one, other] = pair();
      const lease = await one[kind]("orders").lock();
      expect(await other[kind]("orders").tryLock()).toBe(null);
      const next = other[kind]("orders").lock({ wait: 10_000 });
      await lease.unlock();
      expect((await next).held).toBe(true);
    },
  );

  it("two stores know nothing of each other", async () => {
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
    await first?.unlock();
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

  it("a leader is seen by others, and the next candidate follows it", async () => {
    const [one, other] = pair();
    const term = await one.election("scheduler").campaign({ value: "here" });
    expect(await other.election("scheduler").leader()).toMatchObject({ leader: one.id, value: "here" });
    const next = other.election("scheduler").campaign({ value: "there" });
    await term.resign();
    expect((await next).token).toBeGreaterThan(term.token);
  });

  it("once runs one body per interval", async () => {
    const [one, other] = pair();
    expect(await one.once("report", { every: 60_000 }, () => "done")).toEqual({ ran: true, value: "done" });
    expect(await other.once("report", { every: 60_000 }, () => "twice")).toMatchObject({ ran: false });
  });

  it("a multi-lock is all or none", async () => {
    const [one, other] = pair();
    await one.multiLock(["a", "b"]).withLock(async () => {
      expect(await other.multiLock(["b", "c"]).tryLock()).toBe(null);
      expect((await other.lock("c").tryLock())?.held).toBe(true);
    });
  });

  it("a kept lock is given up when another client wants it", async () => {
    const one = createTestLocks({ linger: 1_000 });
    const other = one.test.another();
    open.push(one, other);
    for (let turn = 0; turn < 3; turn++) await one.lock("orders").withLock(() => {});
    await other.lock("orders").withLock(() => {}, { wait: 500 });
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

describe("what a test can make happen", () => {
  it("busy: somebody else holds it, until that is undone", async () => {
    const [one] = pair();
    const busy = await one.test.busy("orders");
    const waits = one.lock("orders").lock({ wait: 20 });
    await expect(waits).rejects.toThrow(LockTimeoutError);
    await expect(one.test.busy("orders")).rejects.toThrow("held already");
    await busy.undo();
    expect((await one.lock("orders").tryLock())?.held).toBe(true);
  });

  it.each(["lose", "expire"] as const)(
    "%s: the holder learns of it at once, and the next one gets it",
    async (how) => {
      const [one, other] = pair();
      const lease = await one.lock("orders").lock();
      const next = other.lock("orders").lock({ wait: 10_000 });
      expect([one.test[how]("orders"), lease.held, lease.signal.aborted]).toEqual([1, false, true]);
      expect(lease.signal.reason).toBeInstanceOf(LockLostError);
      expect(lease.signal.reason).toMatchObject({ reason: how === "lose" ? "gone" : "expired" });
      expect((await next).token).toBeGreaterThan(lease.token);
      expect(one.test[how]("nobody's")).toBe(0);
    },
  );

  it("advance: leases run out, and a waiter has waited", async () => {
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

  it("advance: what is renewed stays, in Redis's place too", async () => {
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

  it("advance: an interval passes", async () => {
    const [one, other] = pair();
    await one.once("report", { every: 60_000 }, () => {});
    await one.test.advance(59_000);
    expect(await other.once("report", { every: 60_000 }, () => {})).toMatchObject({ ran: false });
    await one.test.advance(1_000);
    expect(await other.once("report", { every: 60_000 }, () => {})).toMatchObject({ ran: true });
    await expect(one.test.advance(-1)).rejects.toThrow(RangeError);
  });
});
