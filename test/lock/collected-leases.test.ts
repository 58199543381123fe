import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import type { Lease } from "../../src/index.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// Leases that no code can unlock any more.

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const parties = new Parties();
let a: Party;
let errors: Error[];
let renewals: Map<string, number>;

beforeEach(async () => {
  a = await parties.join({ client: { leaseTime: 1_500 } });
  errors = [];
  renewals = new Map();
  a.locks.on("error", (error) => void errors.push(error));
  a.locks.on("renew", ({ name }) => void renewals.set(name, (renewals.get(name) ?? 0) + 1));
});
afterAll(parties.close);

/** Resolves when a lease of this name has been renewed so often since now. */
async function renewed(name: string, times = 1): Promise<void> {
  const before = renewals.get(name) ?? 0;
  await until(() => (renewals.get(name) ?? 0) >= before + times, { what: "renewals" });
}

/** Collects until something is told, or a few times when nothing is expected. */
async function told(count: number): Promise<Error[]> {
  for (let i = 0; i < (count > 0 ? 200 : 5); i++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    collect();
    if (count > 0 && errors.length >= count) break;
  }
  return errors;
}

describe("a lease that was collected", { timeout: 30_000 }, () => {
  it("is reported once, with its name and token, and the lock stays held and renewed", async () => {
    const name = freshName();
    let token = 0;
    await (async () => {
      token = (await a.locks.lock(name).lock()).token;
    })();
    await renewed(name);
    const [error] = await told(1);
    expect(error).toMatchObject({ code: "LOCK_LEFT_BEHIND", lockName: name });
    expect(error?.message).toContain(`(token ${token}) was garbage collected without unlock()`);
    await renewed(name, 2);
    expect([errors.length, await a.locks.lock(name).isLocked()]).toEqual([1, true]);
  });

  it("is reported for each member of a multi-lock", async () => {
    const names = [freshName(), freshName()];
    await (async () => {
      await a.locks.multiLock(names).lock();
    })();
    for (const name of names) await renewed(name);
    expect((await told(2)).map((error) => error.message).join()).toContain("garbage collected");
  });

  it("is reported for a body that waits without end", async () => {
    const name = freshName();
    void a.locks.lock(name).withLock(() => new Promise(() => {}));
    await renewed(name);
    expect((await told(1))[0]).toMatchObject({ code: "LOCK_LEFT_BEHIND", lockName: name });
  });

  it("is reported for a re-entrant lease in a body that was dropped when the body was over", async () => {
    const lock = a.locks.lock(freshName());
    await lock.withLock(async () => {
      await lock.lock();
    });
    const [error] = await told(1);
    expect(error).toMatchObject({ code: "LOCK_LEFT_BEHIND", lockName: lock.name });
    expect(error?.message).toContain("was garbage collected without unlock()");
    await renewed(lock.name, 5);
    // The report of what is held one lease time after its body is of a lease that somebody can still unlock.
    expect([errors.length, await lock.isLocked()]).toEqual([1, true]);
  });

  it("is reported once for a lease that was renewed in a body, and dropped when the body was over", async () => {
    const name = freshName();
    await a.locks.lock(freshName()).withLock(async () => {
      await a.locks.lock(name).lock();
      await renewed(name);
    });
    expect(await told(1)).toMatchObject([{ code: "LOCK_LEFT_BEHIND", lockName: name }]);
    await renewed(name, 2);
    await told(0);
    expect(errors.length).toBe(1);
  });

  it("is not reported if it is in use, was unlocked, or ends by itself", async () => {
    const [kept, unlocked, explicit, scoped] = [freshName(), freshName(), freshName(), freshName()];
    const lease = await a.locks.lock(kept).lock();
    await (async () => {
      const lease = await a.locks.lock(unlocked).lock();
      await renewed(unlocked);
      await lease.unlock();
    })();
    await (async () => {
      await a.locks.lock(explicit).lock({ lease: 20_000 });
    })();
    const inner = await a.locks.scope(async () => {
      let second: Lease | undefined;
      await (async () => {
        const first = await a.locks.lock(scoped).lock();
        second = await a.locks.lock(scoped).lock();
        await renewed(scoped);
        await first.unlock();
      })();
      expect(await told(0)).toEqual([]);
      await second?.unlock();
      return second;
    });
    expect([await told(0), lease.held, inner?.held]).toEqual([[], true, false]);
    await lease.unlock();
    await a.locks.lock(explicit).forceUnlock();
  });

  it("is not reported if it was unlocked before its first renewal, while its scope still has the lock", async () => {
    const name = freshName();
    await a.locks.scope(async () => {
      let second: Lease | undefined;
      await (async () => {
        const first = await a.locks.lock(name).lock();
        second = await a.locks.lock(name).lock();
        await first.unlock();
      })();
      await renewed(name);
      expect(await told(0)).toEqual([]);
      await second?.unlock();
    });
    expect(await a.locks.lock(name).isLocked()).toBe(false);
  });
});

it("a long scope does not retain leases that were lost and never unlocked", async () => {
  const gone: WeakRef<Lease>[] = [];
  await a.locks.scope(async () => {
    await (async () => {
      const leases = await Promise.all(
        Array.from({ length: 100 }, () => a.locks.lock(freshName()).lock({ lease: 1_500 })),
      );
      for (const lease of leases) gone.push(new WeakRef(lease));
      await until(() => leases.every((lease) => !lease.held), { what: "all of them to be lost" });
    })();
    for (let i = 0; i < 300; i++) await (await a.locks.lock(freshName()).lock()).unlock();
    await a.redis.ping(); // what a WeakRef has shown lives to the end of the turn
    collect();
    expect(gone.filter((lease) => lease.deref()).length).toBeLessThan(10);
  });
});
