import { afterAll, describe, expect, it } from "vitest";
import { encodeLabel } from "../../src/api/label.ts";
import { LockTimeoutError } from "../../src/index.ts";
import { clientOf } from "../../src/redis/party.ts";
import { redissonFencedLock, redissonLock } from "../../src/redisson.ts";
import { spinLock } from "../../src/spin.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { lockOf } from "../support/permit.ts";
import { until } from "../support/until.ts";

// What people see of holders and waiters, and how they end only the holder that they saw.

const parties = new Parties();
afterAll(parties.close);

/** Holds of this client. */
const idOf = ({ locks }: { readonly locks: { readonly id: string } }) =>
  expect.stringMatching(new RegExp(`^${locks.id.replaceAll(/[.%]/g, "\\$&")}:\\d+$`));

const LABELS = [
  "nightly invoice",
  "a/b:1:{tag} 100% ~!'()*",
  "line one\nline two\u0000\u001b[31m",
  "Ünïcödé 漢字 🔒",
  "x".repeat(64),
];

describe("a label", () => {
  it.each(LABELS)(
    "%j: of a client and of a call, is shown with holder and waiters, as the lock moves on",
    async (label) => {
      const [near, far] = [await parties.join({ client: { label } }), await parties.join()];
      expect(near.locks.id).toMatch(/^[\w.%-]+\/[\w.-]+:\d+:[0-9a-f]{16}$/);
      const name = freshName("{x} y");
      const held = await far.locks.lock(name).lock();
      const waiting = near.locks.lock(name).lock();
      const shown = () => near.locks.lock(name).inspect();
      await until(async () => (await shown()).waiters?.length === 1);
      const second = far.locks.fairLock(name).lock({ label });
      await until(async () => (await shown()).waiters?.length === 2);
      const { at, holder, waiters } = await shown();
      expect(holder).toMatchObject({ label: null, id: idOf(far), pid: process.pid });
      expect(waiters?.map((one) => [one.label, clientOf(one)])).toEqual([
        [label, near.locks.id],
        [label, far.locks.id],
      ]);
      for (const one of [holder, ...(waiters ?? [])]) {
        expect(one?.since).toBeLessThanOrEqual(at ?? 0);
        expect(one?.since).toBeGreaterThan((at ?? 0) - 60_000);
      }
      await held.unlock();
      const lease = await waiting;
      expect((await shown()).holder).toMatchObject({ label, id: idOf(near) });
      await lease.extend(40_000);
      expect((await shown()).remaining).toBeGreaterThan(30_000);
      await lease.unlock();
      const last = await second;
      expect((await shown()).holder).toMatchObject({ label, id: idOf(far) });
      await last.unlock();
      expect(await shown()).toMatchObject({ holder: null, waiters: [] });
    },
  );

  it("of a call precedes that of its client, and lasts only as long as its own hold", async () => {
    const { locks } = await parties.join({ client: { label: "billing@2.3" } });
    const lock = locks.lock(freshName());
    await lock.withLock(
      {
        label: "nightly",
      },
      async () => expect((await lock.inspect()).holder?.label).toBe("nightly"),
    );
    await lock.withLock(async () => expect((await lock.inspect()).holder?.label).toBe("billing@2.3"));
  });

  it("is shown for readers, a writer, permits, a multi-lock, and a try", async () => {
    const { locks } = await parties.join();
    const label = "rw job";
    const { read, write } = locks.readWriteLock(freshName());
    for (const lock of [read, write]) {
      const lease = await lock.lock({ label });
      expect((await lock.inspect()).holder?.label).toBe(label);
      await lease.extend(60_000);
      expect((await lock.inspect()).holder?.label).toBe(label);
      await lease.unlock();
    }
    const slots = locks.semaphore(freshName(), { permits: 1, fair: true });
    const first = await slots.acquire(1, { label: "first" });
    const second = slots.acquire(1, { label: "second", lease: 20_000 });
    await until(async () => (await slots.inspect()).waiters.length === 1);
    const { holders, waiters } = await slots.inspect();
    expect([holders[0]?.label, waiters[0]?.label]).toEqual(["first", "second"]);
    await first.release();
    const granted = await second;
    await granted.extend(30_000);
    expect((await slots.inspect()).holders).toMatchObject([{ label: "second" }]);
    await granted.release();
    const names = [freshName(), freshName()];
    const both = await locks.multiLock(names).lock({ label });
    for (const name of names) expect((await locks.lock(name).inspect()).holder?.label).toBe(label);
    await both.unlock();
    const lock = locks.lock(freshName());
    const tried = await lock.tryLock({ label });
    expect((await lock.inspect()).holder?.label).toBe(label);
    await tried?.unlock();
  });

  it("a writer that goes on as a reader keeps its label", async () => {
    const { locks } = await parties.join();
    const { read, write } = locks.readWriteLock(freshName());
    await locks.scope(async () => {
      const writing = await write.lock({ label: "writes" });
      const reading = await read.lock();
      await writing.unlock();
      await until(async () => (await read.inspect()).holder !== null);
      expect((await read.inspect()).holder?.label).toBe("writes");
      await reading.unlock();
    });
  });

  it("is refused if it is empty, longer than 64 bytes, or not a string", async () => {
    const { locks } = await parties.join();
    const lock = locks.lock(freshName());
    for (const label of ["", "x".repeat(65), "é".repeat(33), "\ud800"]) {
      await expect(lock.tryLock({ label })).rejects.toThrow(RangeError);
      await expect(parties.join({ client: { label } })).rejects.toThrow(RangeError);
    }
    await expect(lock.tryLock({ label: 5 as unknown as string })).rejects.toThrow(TypeError);
  });

  it("that is malformed in Redis is shown as none", async () => {
    const { locks, redis } = await parties.join();
    const name = freshName();
    const hold = `holdfast:client:${locks.id}:0000000zabcdefghijklm`;
    const value = (label: string) => `10 ${"1".repeat(16)} ${"1".repeat(16)} ${hold}${label}`;
    for (const label of [" %zz", " ", " %", "  a"]) {
      await redis.set(`holdfast:{${name}}`, value(label), "PX", 5_000);
      const { holder } = await locks.lock(name).inspect();
      expect([holder?.label ?? null, holder?.id]).toEqual([
        label === "  a" ? " a" : null,
        label === "  a" ? `${locks.id}:35` : expect.any(String),
      ]);
    }
    expect(encodeLabel(null)).toBe("");
  });
});

describe("forceUnlock with a token", () => {
  it("ends the holder that was inspected, and not the next one", async () => {
    const { locks } = await parties.join();
    for (const lock of [
      locks.lock(freshName()),
      locks.fairLock(freshName()),
      locks.readWriteLock(freshName()).write,
    ]) {
      const first = await lock.lock({ label: "first" });
      const second = lock.lock({ label: "second" });
      await until(async () => (await lock.inspect()).here.waiting === 1);
      const { holder } = await lock.inspect();
      const token = holder?.token ?? 0;
      expect(await lock.forceUnlock({ token: token - 1 })).toBe(false);
      expect(first.held).toBe(true);
      expect(await lock.forceUnlock({ token, label: "alice" })).toBe(true);
      const next = await second;
      await expect(first.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
      expect(await lock.forceUnlock({ token, label: "alice" })).toBe(false);
      expect(next.held).toBe(true);
      await next.unlock();
      expect(await lock.forceUnlock({ token })).toBe(false);
    }
  });

  it("of one holder of a semaphore leaves the others theirs", async () => {
    const { locks } = await parties.join();
    const slots = locks.semaphore(freshName(), { permits: 2, fair: true });
    const [one, other] = [await slots.acquire(), await slots.acquire()];
    const { holders } = await slots.inspect();
    expect(holders.map(({ token }) => token)).toEqual([null, null]);
    const [seen, kept] = holders;
    expect(await slots.forceUnlock({ holder: `${seen?.id}0` })).toBe(0);
    expect(await slots.forceUnlock({ holder: seen?.id })).toBe(1);
    expect((await slots.inspect()).holders).toMatchObject([{ id: kept?.id }]);
    const outcomes = await Promise.allSettled([one.release(), other.release()]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  });

  it("is a TypeError for kinds without tokens; a fenced Redisson lock has them", async () => {
    const { locks } = await parties.join();
    for (const lock of [
      spinLock(locks, freshName()),
      redissonLock(locks, freshName()),
      locks.semaphore(freshName()),
    ])
      await expect(lock.forceUnlock({ token: 1 })).rejects.toThrow(/no tokens; .*\{ holder: party.id \}/);
    const lock = redissonFencedLock(locks, freshName());
    const lease = await lock.lock();
    expect(await lock.forceUnlock({ token: lease.token + 1 })).toBe(false);
    expect(await lock.forceUnlock({ token: lease.token })).toBe(true);
    for (const token of [0, 1.5, -1, Number.POSITIVE_INFINITY])
      await expect(lock.forceUnlock({ token })).rejects.toThrow(RangeError);
  });
});

describe("a caller that has timed out", () => {
  it("receives the holder, by its label, host and pid", async () => {
    const [near, far] = [await parties.join(), await parties.join({ client: { label: "billing" } })];
    for (const kind of ["lock", "fairLock", "spinLock"] as const) {
      const lock = lockOf(near.locks, kind, freshName());
      const held = await lockOf(far.locks, kind, lock.name).lock({ label: "nightly\ninvoice" });
      const label = kind === "spinLock" ? "billing" : "nightly\ninvoice";
      for (const call of [() => lock.lock({ wait: 30 }), () => lock.withLock({ wait: 30 }, () => {})]) {
        const error = (await call().catch((error: unknown) => error)) as LockTimeoutError;
        expect(error).toBeInstanceOf(LockTimeoutError);
        expect(error.holder).toMatchObject({ label, id: idOf(far), pid: process.pid });
        const shown = label.replace("\n", "\\u000a");
        expect(error.message).toContain(
          `was still held by ${shown} (${error.holder?.host}:${process.pid}) when \`wait\` (30 ms) was over: wait longer`,
        );
      }
      await held.unlock();
    }
    const slots = near.locks.semaphore(freshName(), { permits: 1 });
    const permit = await far.locks.semaphore(slots.name, { permits: 1 }).acquire(1, { label: "job" });
    const { read, write } = near.locks.readWriteLock(freshName());
    const reader = await far.locks.readWriteLock(read.name).read.lock({ label: "job" });
    const both = near.locks.multiLock([freshName(), slots.name]);
    const member = await far.locks.lock(slots.name).lock({ label: "job" });
    const wait = 30;
    for (const call of [
      () => slots.acquire(1, { wait }),
      () => write.lock({ wait }),
      () => both.lock({ wait }),
    ])
      await expect(call()).rejects.toMatchObject({ code: "LOCK_TIMEOUT", holder: { label: "job" } });
    for (const lease of [permit, reader, member]) await lease[Symbol.asyncDispose]();
  });

  it("needs no request for its own process, and shares one with many callers", async () => {
    const { locks } = await parties.join({ client: { label: "me" } });
    const lock = locks.lock(freshName());
    await lock.withLock({ label: "job" }, () =>
      locks.outside(async () => {
        const error = await lock.lock({ wait: 20 }).catch((error: unknown) => error);
        expect(error).toMatchObject({
          heldBy: "this process",
          holder: { label: "job", id: idOf({ locks }) },
        });
      }),
    );
    const far = await parties.join();
    const held = await far.locks.lock(lock.name).lock();
    const calls = Array.from({ length: 50 }, () => lock.lock({ wait: 60 }).catch((error: unknown) => error));
    const holders = (await Promise.all(calls)).map((error) => (error as LockTimeoutError).holder);
    expect(holders[0]).toMatchObject({ id: idOf(far) });
    expect(new Set(holders).size).toBeLessThan(10);
    await held.unlock();
  });
});
