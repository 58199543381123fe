import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Parties, type Party } from "../support/fixture.ts";
import { lockOf } from "../support/permit.ts";
import type { OwnServer } from "../support/servers/topology.ts";
import { STAY_FRESH } from "../support/stays.ts";
import { until } from "../support/until.ts";
import { failure, leased, lossOf } from "./observe.ts";
import type { Subject } from "./subject.ts";

const CLOCK = "holdfast:clock";

/**
 * Every change of holder gives a larger number, whatever happens to the clock or the holder; and to
 * the data, but for a counter.
 */
export function tokens(subject: Subject): void {
  describe("tokens", () => {
    const parties = new Parties();
    let server: OwnServer;
    let first: Party;
    let second: Party;
    let tokens: number[];

    beforeAll(() =>
      subject.during(async () => {
        server = await subject.ownServer();
        first = await server.join(parties, subject.client);
        second = await server.join(parties, subject.client);
      }),
    );
    afterAll(() =>
      subject.during(async () => {
        await parties.close();
        await server?.stop();
      }),
    );
    beforeEach(async () => {
      tokens = [];
      await forget();
    });

    /** All data is lost, and no client takes what it has cached for its own any more. */
    const forget = async () => {
      await first.redis.flushall();
      const lost = performance.now();
      if (subject.lingers) await until(() => performance.now() > lost + STAY_FRESH);
    };

    /** Takes the lock and gives it back, and remembers the token. */
    const visit = (party: Party) =>
      subject.of(party, "orders").withLock({ wait: 10_000 }, ({ token }) => void tokens.push(token));
    const expectGrowth = (count: number) => {
      expect(tokens.length).toBe(count);
      expect(tokens.every(Number.isSafeInteger)).toBe(true);
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b)); // strictly
    };

    it("grow over local hand-offs and over grants between processes", async () => {
      await Promise.all(Array.from({ length: 60 }, (_, n) => visit(n % 3 === 0 ? second : first)));
      expectGrowth(60);
    });

    it("grow over expiries and force-releases", async () => {
      const lock = subject.of(first, "orders");
      for (let round = 0; round < 3; round++) {
        const expired = await leased(() => lock.lock({ lease: 300 }));
        tokens.push(expired.token);
        await lossOf(expired.signal);
        await visit(second);
        const forced = await lock.lock({ wait: 10_000, ...subject.proving });
        tokens.push(forced.token);
        await subject.of(second, "orders").forceUnlock();
        await visit(second);
        await failure(forced.unlock());
      }
      expectGrowth(12);
    });

    it("are the same for all who share a lease, and for all kinds of this protocol", async () => {
      const lock = subject.of(first, "orders");
      await lock.withLock(async ({ token }) => {
        expect(token).toBeGreaterThan(0);
        expect((await lock.inspect()).token).toBe(token);
        await using entered = await lock.lock();
        expect(entered.token).toBe(token);
        for (const kind of subject.counter || subject.isCounted
          ? [subject.kind]
          : (["lock", "fairLock"] as const))
          expect(await lockOf(first.locks, kind, "orders").withLock((lease) => lease.token)).toBe(token);
      });
    });

    it.skipIf(subject.counter)("grow over FLUSHALL, with and without a holder", async () => {
      await visit(first);
      await forget();
      await visit(second);
      const lease = await subject.of(first, "orders").lock(subject.proving);
      tokens.push(lease.token);
      await first.redis.flushall();
      await visit(second);
      await failure(lease.unlock());
      expectGrowth(4);
    });

    it.skipIf(subject.counter)("grow over a server restart without data", async () => {
      for (let n = 0; n < 5; n++) await visit(first);
      await server.restart();
      for (const { redis } of [first, second]) await until(() => redis.status === "ready");
      await visit(second);
      await visit(first);
      expectGrowth(7);
    });

    it.skipIf(subject.counter)("go on from the last one when the server's clock steps back", async () => {
      const ahead = (Date.now() + 3_600_000) * 1_000;
      await first.redis.set(CLOCK, ahead);
      await visit(first);
      expect(tokens[0]).toBe(ahead + 1);
      for (let n = 0; n < 5; n++) await visit(n % 2 === 0 ? second : first);
      expectGrowth(6);
      expect(tokens.at(-1)).toBeLessThan(ahead + 100);
    });

    it.skipIf(subject.counter)(
      "are reserved for local hand-offs: when the clock steps back, the next process gets a larger one",
      async () => {
        await first.redis.set(CLOCK, (Date.now() + 3_600_000) * 1_000);
        for (let round = 0; round < 5; round++) {
          const held = await subject.of(second, "orders").lock();
          tokens.push(held.token);
          const calls = Array.from({ length: 12 }, () => visit(first)); // more than it may pass
          await until(async () => (await first.redis.zcard(subject.queueOf("orders") ?? "")) > 0);
          await held.unlock();
          await Promise.all([...calls, visit(second)]);
        }
        expectGrowth(5 * 14);
        expect(Number(await first.redis.get(CLOCK))).toBeGreaterThanOrEqual(tokens.at(-1) ?? 0);
      },
    );
  });
}
