import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freshName, Parties, type Party } from "../support/fixture.ts";

// `locks.outside()`. What drain loops do in every kind is in contract/drain-loops.ts.

const parties = new Parties();
let a: Party;

beforeAll(async () => {
  a = await parties.join();
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

  it("allows a new scope inside it", async () => {
    const [outer, inner] = [a.locks.lock(freshName()), a.locks.lock(freshName())];
    await outer.withLock(() =>
      a.locks.outside(() =>
        inner.withLock(() => expect([outer.isHeldHere(), inner.isHeldHere()]).toEqual([false, true])),
      ),
    );
  });

  it.each([undefined, null, 5, "f", {}])("refuses %s as a function", (given) => {
    const call = a.locks.outside.bind(a.locks) as (given: unknown) => unknown;
    expect(() => call(given)).toThrow(
      new TypeError("Cannot run anything outside of the scopes: it takes a function"),
    );
  });
});
