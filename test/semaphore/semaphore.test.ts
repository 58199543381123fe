import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import type { PermitLease, Semaphore } from "../../src/index.ts";
import { record } from "../contract/observe.ts";
import { freshName } from "../support/fixture.ts";
import { SemaphoreServer, waiting } from "../support/semaphores.ts";
import { turnOf } from "../support/turn.ts";
import { until } from "../support/until.ts";

// Permits as callers use them: what is given and in which order, and what is left behind.

const own = new SemaphoreServer();

const keys = ({ name }: Semaphore): [string, string] => [
  `holdfast:semaphore:{${name}}`,
  `holdfast:semaphore:{${name}}:queue`,
];

describe("permits", () => {
  it("with fair: true are given in the order of callers: a large request is not overtaken", async () => {
    const [a, b] = (await own.openFair(2, 3)) as [Semaphore, Semaphore];
    const [one, two] = [await a.acquire(), await a.acquire()];
    expect([one.held, two.held, one.units, turnOf(one) < turnOf(two)]).toEqual([true, true, 1, true]);
    expect(await b.tryAcquire(2)).toBeNull();
    const order: string[] = [];
    const enter = async (slots: Semaphore, units: number, label: string): Promise<PermitLease> => {
      const lease = await slots.acquire(units);
      order.push(label);
      return lease;
    };
    const large = enter(b, 3, "large");
    await waiting(a, 1);
    const small = enter(a, 1, "small");
    await waiting(a, 2);
    expect(await a.tryAcquire()).toBeNull(); // one is free, and somebody waits for it
    await one.release();
    expect(order).toEqual([]);
    const since = performance.now();
    await two.release();
    await (await large).release();
    await (await small).release();
    expect(order).toEqual(["large", "small"]);
    expect(performance.now() - since).toBeLessThan(1_400); // by messages, not by looking again
    expect(await own.admin.exists(...keys(a))).toBe(0);
  });

  it("with fair: true are given in the order in which callers of one process came, each with its own place", async () => {
    const [a, b] = (await own.openFair(2, 4)) as [Semaphore, Semaphore];
    const held = await a.acquire(4);
    const order: number[] = [];
    const all = [2, 3, 1, 4, 1].map(async (units, i) => {
      const lease = await b.acquire(units);
      order.push(i);
      await lease.release();
    });
    await waiting(a, 5);
    expect((await a.inspect()).waiters.map(({ units }) => units)).toEqual([2, 3, 1, 4, 1]);
    await held.release();
    await Promise.all(all);
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  it("need no subscription if no caller may wait", async () => {
    const [a] = (await own.open(1, 10)) as [Semaphore];
    const all = await Promise.all(Array.from({ length: 7 }, () => a.tryAcquire()));
    expect(await own.admin.pubsub("CHANNELS", "holdfast:client:*")).toEqual([]);
    await Promise.all(all.map((lease) => lease?.release()));
  });

  it("have leases of their own, which end, are renewed and are extended separately", async () => {
    const [a, b] = (await own.open(2, 2)) as [Semaphore, Semaphore];
    const [short, renewed] = [await a.acquire({ lease: 200 }), await a.acquire()];
    expect((await b.acquire()).held).toBe(true);
    expect([short.held, renewed.held]).toEqual([false, true]);
    await expect(short.release()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    await renewed.extend(90_000);
    const { holders } = await a.inspect();
    expect(Math.max(...holders.map(({ remaining }) => remaining))).toBeGreaterThan(80_000);
  });

  it("are held by bodies, whose signals report a loss", async () => {
    const [a, b] = (await own.open(2, 2)) as [Semaphore, Semaphore];
    await (await b.acquire()).release();
    const seen: unknown[] = [];
    expect(await a.withPermits(({ units }) => units)).toBe(1);
    expect(await a.withPermits(2, { wait: 100 }, async ({ units }) => units)).toBe(2);
    expect(await a.withPermits(2, { confirm: true }, ({ held }) => held)).toBe(true);
    expect(await a.withPermits({ lease: 1_000 }, ({ held }) => held)).toBe(true);
    await expect(
      a.withPermits(2, async (lease) => {
        // Not re-entered: it would wait for itself.
        seen.push(await a.tryAcquire());
        await expect(b.acquire(1, { wait: 50 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT", wait: 50 });
        expect(await b.forceUnlock({ label: "me" })).toBe(1);
        await lease.extend(1_000).catch(() => {});
        throw new Error("too late");
      }),
    ).rejects.toMatchObject({ code: "LOCK_LOST", cause: new Error("too late") });
    expect(seen).toEqual([null]);
    expect(await own.admin.exists(...keys(a))).toBe(0);
  });

  it("that are force-released are lost at once", async () => {
    const [a, b] = (await own.open(2, 1)) as [Semaphore, Semaphore];
    const blocker = await b.acquire();
    const held = a.acquire(); // so that this client listens
    await waiting(b, 1);
    await blocker.release();
    const { signal } = await held;
    expect(await b.forceUnlock({ label: "alice" })).toBe(1);
    await until(() => signal.aborted);
    expect(signal.reason).toMatchObject({ reason: "revoked", by: "alice" });
  });

  it("that a scope leaves behind are ended, and their callers are notified", async () => {
    const { locks } = await own.parties.join({ url: own.url });
    const slots = locks.semaphore(freshName(), { permits: 3 });
    const told = record(locks);
    const leases = await locks.scope(async () => {
      const leases = [await slots.acquire(), await slots.acquire(2)]; // a second one: nothing is re-entered
      expect((await slots.inspect()).used).toBe(3);
      return leases;
    });
    expect(told.error).toMatchObject([{ code: "LOCK_LEFT_BEHIND" }, { code: "LOCK_LEFT_BEHIND" }]);
    expect(told.lost).toMatchObject([1, 2].map((units) => ({ units, error: { reason: "scope" } })));
    expect(told.release).toEqual([]);
    for (const [i, lease] of leases.entries()) {
      expect([lease.held, lease.signal.reason]).toEqual([false, told.lost[i]?.error]);
      await expect(lease.release()).rejects.toBe(told.lost[i]?.error);
    }
    expect(await slots.tryAcquire(3)).not.toBeNull();
  });

  it("that were acquired in a body of withPermits stay with their caller when the body ends", async () => {
    const [a, b] = (await own.open(2, 3)) as [Semaphore, Semaphore];
    const lease = await a.withPermits(() => a.acquire(2));
    expect([lease.held, lease.signal.aborted, (await b.inspect()).used]).toEqual([true, false, 2]);
    expect(await b.tryAcquire(2)).toBeNull();
    await lease.release();
    expect(await b.tryAcquire(3)).not.toBeNull();
  });
});

describe("a caller", () => {
  it("that leaves gives its place up, and one that closes gives up all it has", async () => {
    const name = freshName();
    const [a, b] = [await own.parties.join({ url: own.url }), await own.parties.join({ url: own.url })];
    const [mine, theirs] = [a, b].map(({ locks }) => locks.semaphore(name, { permits: 1 })) as [
      Semaphore,
      Semaphore,
    ];
    const held = await mine.acquire();
    const leaving = new AbortController();
    const left = theirs.acquire({ signal: leaving.signal });
    await waiting(mine, 1);
    leaving.abort(new Error("enough"));
    await expect(left).rejects.toThrow("enough");
    await waiting(mine, 0);
    expect(await theirs.tryAcquire(1, 50)).toBeNull();
    await a.locks.close({ grace: 0 });
    expect(held.held).toBe(false);
    expect((await theirs.acquire()).held).toBe(true);
    await expect(mine.acquire()).rejects.toMatchObject({ code: "CLIENT_CLOSED" });
  });

  it("that has gone gives back at once what is granted to it", async () => {
    const [a, b] = (await own.open(2, 1)) as [Semaphore, Semaphore];
    const blocker = await a.acquire();
    const leaving = new AbortController();
    const left = b.acquire(1, { signal: leaving.signal });
    await waiting(a, 1);
    const [, queue] = keys(a);
    const [entry = "", ticket = ""] = await own.admin.zrange(queue, 0, "-1", "WITHSCORES");
    leaving.abort(new Error("enough"));
    await expect(left).rejects.toThrow("enough");
    await until(async () => (await own.admin.zcard(queue)) === 0);
    // As a copy of its command does, that the network kept.
    await own.admin.zadd(queue, ticket, entry);
    const since = performance.now();
    await blocker.release();
    await (await a.acquire()).release();
    expect(performance.now() - since).toBeLessThan(1_000); // the grant's own end is 3 s away
  });
});

describe("a semaphore shows", () => {
  it("its holders and waiters, with their units", async () => {
    const name = freshName();
    const { locks } = await own.parties.join({ url: own.url });
    const slots = locks.semaphore(name, { permits: 5 });
    const lease = await slots.acquire(4, { lease: 20_000 });
    const waiter = slots.acquire(3);
    await waiting(slots, 1);
    const seen = await slots.inspect();
    const party = {
      id: expect.stringContaining(locks.id),
      label: null,
      host: expect.any(String),
      pid: process.pid,
      since: expect.any(Number),
      mode: null,
    };
    expect(seen).toEqual({
      permits: 5,
      isSet: false,
      used: 4,
      holders: [
        { ...party, units: 4, token: null, heldFor: expect.any(Number), remaining: expect.any(Number) },
      ],
      waiters: [{ ...party, units: 3, waitedFor: expect.any(Number) }],
      at: expect.any(Number),
      here: { waiting: 1, longest: expect.any(Number) },
    });
    expect(JSON.stringify(seen)).toContain(locks.id);
    expect(inspect(slots, { breakLength: 200 })).toBe(
      `Semaphore { name: '${name}', kind: 'semaphore', permits: 5 }`,
    );
    expect(JSON.parse(JSON.stringify(lease))).toMatchObject({ name, held: true, units: 4 });
    await lease.release();
    await (await waiter).release();
  });

  it("its events, with their units", async () => {
    const { locks } = await own.parties.join({ url: own.url });
    const slots = locks.semaphore(freshName(), { permits: 3 });
    const told: unknown[] = [];
    for (const event of ["acquire", "wait", "giveup", "release"] as const)
      locks.on(event, ({ kind, call, units }: { kind: string; call: number; units?: number | undefined }) =>
        told.push([event, kind, call, units]),
      );
    const lease = await slots.acquire(2);
    // It gives up long after Redis has queued it.
    expect(await slots.tryAcquire(3, 1_000)).toBeNull();
    await lease.release();
    expect(told).toEqual([
      ["acquire", "semaphore", 1, 2],
      ["wait", "semaphore", 2, 3],
      ["giveup", "semaphore", 2, 3],
      ["release", "semaphore", 1, 2],
    ]);
  });
});
