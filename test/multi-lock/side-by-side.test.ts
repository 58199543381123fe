import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { failure } from "../contract/observe.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// Multi-locks beside other calls of their scope. What single locks do there is in contract/side-by-side.ts.

const parties = new Parties();
let a: Party;
let b: Party;

beforeAll(async () => {
  [a, b] = [await parties.join(), await parties.join()];
});
afterAll(parties.close);

const NO_OPTIONS = {};

/** Three names in the order of locks. */
function names(): readonly [string, string, string] {
  const name = freshName();
  return [`${name}:1`, `${name}:2`, `${name}:3`];
}

const isFree = async (...all: string[]) =>
  until(
    async () => (await Promise.all(all.map((name) => b.locks.lock(name).isLocked()))).every((is) => !is),
    {
      what: "all locks to be free",
    },
  );

describe("multi-locks side by side in one scope", () => {
  it.each(["lock", "tryLock"] as const)("two that overlap, by %s(), share their members", async (how) => {
    const [one, two, three] = names();
    await a.locks.scope(async () => {
      const [p, q] = await Promise.all([
        a.locks.multiLock([one, two])[how](NO_OPTIONS),
        a.locks.multiLock([two, three])[how](NO_OPTIONS),
      ]);
      expect([p?.held, q?.held, q?.tokens.get(two)]).toEqual([true, true, p?.tokens.get(two)]);
      await p?.unlock();
      expect([q?.held, await b.locks.lock(two).tryLock()]).toEqual([true, null]);
      await q?.unlock();
    });
    await isFree(one, two, three);
  });

  it.each(["lock", "tryLock"] as const)("a single lock after it, by %s(), enters its member", async (how) => {
    const [one, two] = names();
    await a.locks.scope(async () => {
      const [multi, single] = await Promise.all([
        a.locks.multiLock([one, two]).lock(),
        a.locks.lock(two)[how](NO_OPTIONS),
      ]);
      expect([single?.held, single?.token]).toEqual([true, multi.tokens.get(two)]);
      await Promise.all([multi.unlock(), single?.unlock()]);
    });
    await isFree(one, two);
  });

  it.each(["lock", "tryLock"] as const)("after a single lock, by %s(), it enters that", async (how) => {
    const [one, two] = names();
    await a.locks.scope(async () => {
      const [single, multi] = await Promise.all([
        a.locks.lock(one).lock(),
        a.locks.multiLock([one, two])[how](NO_OPTIONS),
      ]);
      expect([multi?.held, multi?.tokens.get(one)]).toEqual([true, single.token]);
      await Promise.all([multi?.unlock(), single.unlock()]);
    });
    await isFree(one, two);
  });

  it("a waiting one enters what another call of its scope gets meanwhile", async () => {
    const [one, two, three] = names();
    const foreign = await b.locks.lock(one).lock();
    await a.locks.scope(async () => {
      const first = a.locks.multiLock([one, two]).lock();
      // The other one is behind it: if it came first, the scope would hold `three` and could not
      // wait for `two`.
      await until(async () => (await b.locks.lock(one).inspect()).waiters?.length === 1);
      const second = a.locks.multiLock([one, three]).lock();
      await a.redis.ping();
      await foreign.unlock();
      const leases = await Promise.all([first, second]);
      expect(leases[1].tokens.get(one)).toBe(leases[0].tokens.get(one));
      for (const lease of leases) await lease.unlock();
    });
    await isFree(one, two, three);
  });

  it("bodies exclude each other, and borrow from a lease beside them", async () => {
    const [one, two, three] = names();
    let inside = 0;
    let most = 0;
    const body = async (): Promise<void> => {
      most = Math.max(most, ++inside);
      await a.redis.ping();
      inside--;
    };
    await a.locks.scope(async () => {
      const [lease] = await Promise.all([
        a.locks.multiLock([one, two]).lock(),
        a.locks.multiLock([two, three]).withLock(body),
        a.locks.lock(two).withLock(body),
        a.locks.multiLock([one, two]).withLock(body),
      ]);
      expect(most).toBe(1);
      await lease.unlock();
    });
    await isFree(one, two, three);
  });

  it("one that would be out of order beside a later lock is refused, and never hangs", async () => {
    const [one, two] = names();
    const foreign = await b.locks.lock(one).lock();
    await a.locks.scope(async () => {
      const multi = failure(a.locks.multiLock([one, two]).lock());
      await using _ = await a.locks.lock(two).lock();
      expect(await multi).toMatchObject({ code: "LOCK_ORDER" });
    });
    await foreign.unlock();
    await isFree(one, two);
  });

  it("its own time and signal count, whatever its scope gets", async () => {
    const [one, two, three] = names();
    const foreign = await b.locks.lock(three).lock();
    const controller = new AbortController();
    await a.locks.scope(async () => {
      const singles = Promise.all([a.locks.lock(one).lock(), a.locks.lock(two).lock()]);
      const late = failure(a.locks.multiLock([one, three]).lock({ wait: 100 }));
      const aborted = failure(a.locks.multiLock([two, three]).lock({ signal: controller.signal }));
      const leases = await singles;
      expect(await late).toMatchObject({ code: "LOCK_TIMEOUT" });
      controller.abort("enough");
      expect(await aborted).toBe("enough");
      for (const lease of leases) await lease.unlock();
    });
    await foreign.unlock();
    await isFree(one, two, three);
  });

  it("one keeps what its scope has at the call, also a lock that is unlocked in the same turn", async () => {
    const [one, two, three] = names();
    await a.locks.scope(async () => {
      const [first, second] = [await a.locks.lock(one).lock(), await a.locks.lock(two).lock()];
      const all = a.locks.multiLock([one, two, three]).lock();
      const unlocked = Promise.all([first.unlock(), second.unlock()]);
      const lease = await all;
      await unlocked;
      expect(lease.held).toBe(true);
      expect([await b.locks.lock(one).tryLock(), await b.locks.lock(two).tryLock()]).toEqual([null, null]);
      await lease.unlock();
    });
    await isFree(one, two, three);
  });
});
