import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freshName, Parties, type Party } from "../../support/fixture.ts";
import { until } from "../../support/until.ts";

// `locks.outside()` and clients without scopes. What drain loops do in every kind is in contract/drains.ts.

const parties = new Parties();
let a: Party;
let off: Party;

beforeAll(async () => {
  a = await parties.join();
  off = await parties.join({ client: { scopes: false } });
});
afterAll(parties.close);

describe("locks.outside()", () => {
  it("leaves the scope for all that it starts, and only for that", async () => {
    const lock = a.locks.lock(freshName());
    await lock.withLock(async () => {
      const [now, later] = a.locks.outside(() => [lock.isHeldHere(), delay(1).then(() => lock.isHeldHere())]);
      expect([now, await later, lock.isHeldHere()]).toEqual([false, false, true]);
      expect(await a.locks.outside(() => lock.tryLock())).toBe(null);
    });
  });

  it("keeps the caller's own stores", async () => {
    const requests = new AsyncLocalStorage<string>();
    const lock = a.locks.lock(freshName());
    const seen = await requests.run("request 1", () =>
      lock.withLock(() =>
        a.locks.outside(async () => {
          await delay(1);
          return [requests.getStore(), lock.isHeldHere()];
        }),
      ),
    );
    expect(seen).toEqual(["request 1", false]);
  });

  it("returns what its function returns, and throws what it throws", () => {
    expect(a.locks.outside(() => 42)).toBe(42);
    expect(() =>
      a.locks.outside(() => {
        throw new Error("thrown inside");
      }),
    ).toThrow("thrown inside");
  });

  it("a scope can be opened in it", async () => {
    const [outer, inner] = [a.locks.lock(freshName()), a.locks.lock(freshName())];
    await outer.withLock(() =>
      a.locks.outside(() =>
        inner.withLock(() => expect([outer.isHeldHere(), inner.isHeldHere()]).toEqual([false, true])),
      ),
    );
  });

  it.each([undefined, null, 5, "f", {}])("%s is no function", (given) => {
    const call = a.locks.outside.bind(a.locks) as (given: unknown) => unknown;
    expect(() => call(given)).toThrow(
      new TypeError("Cannot run anything outside of the scopes: it takes a function"),
    );
  });
});

describe("a client without scopes", () => {
  it("warns of a caller that waits for itself", async () => {
    const lock = off.locks.lock(freshName());
    const warnings: Error[] = [];
    const hear = (warning: Error): unknown => warnings.push(warning);
    process.on("warning", hear);
    try {
      await lock.withLock(async () => {
        const nested = lock.lock({ lease: 100, watchdog: true, wait: 5_000 });
        await until(() => warnings.length > 0, { what: "the warning" });
        expect(warnings[0]).toMatchObject({ code: "LOCK_SELF_WAIT" });
        void nested.then((lease) => lease.unlock());
      });
    } finally {
      process.off("warning", hear);
    }
    await until(async () => !(await lock.isLocked()), { what: "the lock to be free" });
  });

  it("takes nested multi-locks that are out of order without a word", async () => {
    const name = freshName();
    const [first, second] = [`${name}:1`, `${name}:2`];
    const order = (party: Party) =>
      party.locks.multiLock([second]).withLock(() => party.locks.multiLock([first]).withLock(() => "taken"));
    await expect(order(a)).rejects.toMatchObject({ code: "LOCK_ORDER" });
    expect(await order(off)).toBe("taken");
    expect(() => off.locks.multiLock([first, second]).isHeldHere()).toThrow(TypeError);
  });

  it("leaves leases to their callers when a body ends", async () => {
    const [outer, inner] = [off.locks.lock(freshName()), off.locks.lock(freshName())];
    const lease = await outer.withLock(() => inner.lock());
    expect(lease.held).toBe(true);
    await lease.unlock();
  });

  it("is told by true or false", async () => {
    await expect(parties.join({ client: { scopes: "no" } as never })).rejects.toThrow(
      new TypeError("Cannot create a lock client: scopes must be true or false, received 'no'"),
    );
  });
});
