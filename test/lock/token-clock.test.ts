import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// The last token that was given stands in Redis. Where something else has written it, tokens grow
// all the same, or none is given.

const MAX = Number.MAX_SAFE_INTEGER;
const CLOCK = "holdfast:clock";
const parties = new Parties();
let server: LocalServer;
let near: Party;
let far: Party;

beforeAll(async () => {
  server = await launchServer(); // its clock is every lock's
});
beforeEach(async () => {
  near = await parties.join({ url: server.url });
  far = await parties.join({ url: server.url });
});
afterEach(async () => {
  await near.redis.del(CLOCK);
  await parties.close();
});
afterAll(() => server.stop());

const failure = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);
const refusal = {
  code: "LOCK_UNAVAILABLE",
  message: expect.stringMatching(/holdfast:clock, is at .*2\^53-1.* DEL holdfast:clock,/),
};

describe("a clock that is too large", () => {
  it.for([`${MAX}`, "9007199254740993", "1e+300", "inf"])(
    "%s: no token is given, and nothing is held or written",
    async (poison) => {
      await near.redis.set(CLOCK, poison);
      const names = [freshName(), freshName(), freshName()];
      const [name = ""] = names;
      for (const take of [
        () => near.locks.lock(name).tryLock(),
        () => near.locks.lock(name).lock(),
        () => near.locks.fairLock(name).withLock(() => "never"),
        () => near.locks.multiLock(names).tryLock(),
      ])
        expect(await failure(take())).toMatchObject(refusal);
      expect(await near.redis.get(CLOCK)).toBe(poison);
      expect(await near.redis.keys("*")).toEqual([CLOCK]);
      await near.redis.del(CLOCK); // what the message says
      const lease = await near.locks.lock(name).lock();
      expect(lease.token).toBeLessThan(MAX);
      await lease.unlock();
    },
  );

  it("gives the remaining numbers, each of them once", async () => {
    await near.redis.set(CLOCK, `${MAX - 3}`);
    const tokens: number[] = [];
    const name = freshName();
    const refused = await failure(
      (async () => {
        for (let i = 0; i < 9; i++)
          await far.locks.fairLock(name).withLock(({ token }) => tokens.push(token));
      })(),
    );
    expect(tokens).toEqual([MAX - 2, MAX - 1, MAX]);
    expect(refused).toMatchObject(refusal);
  });

  it("several locks get one each, or none is acquired", async () => {
    await near.redis.set(CLOCK, `${MAX - 2}`);
    const names = [freshName(), freshName(), freshName()];
    expect(await failure(near.locks.multiLock(names).tryLock())).toMatchObject({ code: "LOCK_UNAVAILABLE" });
    for (const name of names) expect(await near.locks.lock(name).isLocked()).toBe(false);
  });

  it.for([
    ["the holder's process has no waiter", 0],
    ["the holder's process has a waiter too, so that it yields", 1],
  ] as const)(
    "at an unlock: it resolves, and the waiters get their turns after a repair; %s",
    async ([, own]) => {
      const name = freshName();
      const holder = await parties.join({ url: server.url, client: { localHandoffs: 0 } });
      const held = await holder.locks.lock(name).lock();
      const waiting = [far.locks.lock(name).lock()];
      const places = async () => (await near.locks.lock(name).inspect()).waiters?.length ?? 0;
      await until(async () => (await places()) === 1);
      if (own) waiting.push(holder.locks.lock(name).lock());
      await near.redis.set(CLOCK, `${MAX}`);
      await held.unlock();
      expect(await near.locks.lock(name).isLocked()).toBe(false);
      expect(await failure(near.locks.lock(name).tryLock())).toMatchObject(refusal);
      await near.redis.del(CLOCK);
      for (const one of waiting) {
        const lease = await one;
        expect(lease.token).toBeGreaterThan(held.token);
        await lease.unlock();
      }
    },
  );
});

describe("a clock that is not a number, or negative, is repaired", () => {
  it.for(["hello", "", "-5", "nan"])("%s", async (text) => {
    await near.redis.set(CLOCK, text);
    const first = await near.locks.lock(freshName()).lock();
    const second = await near.locks.lock(freshName()).lock();
    const [seconds = "0"] = await near.redis.time();
    expect(first.token).toBeGreaterThan((Number(seconds) - 60) * 1_000_000);
    expect(second.token).toBeGreaterThan(first.token);
    expect(Number(await near.redis.get(CLOCK))).toBeGreaterThanOrEqual(second.token);
    await Promise.all([first.unlock(), second.unlock()]);
  });
});
