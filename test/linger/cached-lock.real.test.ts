// On a real Redis; in virtual time: test/world/directed/cached-locks.test.ts.

import { describe, expect, it } from "vitest";
import { timed, timedAwake } from "../support/stage.ts";
import { LINGERING, STAY_WINDOW } from "../support/stays.ts";
import { until } from "../support/until.ts";
import { AT_ONCE, besideKeepers, type Keeper, withKeeper } from "./keepers.ts";

// A process keeps a lock although nobody is inside, and something becomes of the process, of its
// connections or of the key.

/** ms: the time of a kept lock, and what a waiter adds to that; a lease would be ten times as long. */
const A_WINDOW = STAY_WINDOW + 1_925;

const beside = besideKeepers();

/** Resolves with the token of a turn here, and how long it took to come. */
async function turn({ lock }: Keeper): Promise<{ token: number; waited: number }> {
  const [lease, waited] = await timed(beside.here.locks.lock(lock.name).lock());
  expect(await lock.holder()).toContain(beside.here.locks.id);
  await lease.unlock();
  return { token: lease.token, waited };
}

/** The same where no time passes while this machine stands still. */
async function soon({ lock }: Keeper): Promise<number> {
  const [lease, waited] = await timedAwake(beside.here.locks.lock(lock.name).lock());
  await lease.unlock();
  return waited;
}

describe("a process that caches a lock", () => {
  it("releases it as soon as another process wants it", async ({ annotate }) => {
    await withKeeper(beside, async (keeper) => {
      const { token, waited } = await turn(keeper);
      await annotate(`${waited} ms`);
      expect(await soon(keeper)).toBeLessThan(AT_ONCE);
      const again = await keeper.actor.call("acquire", "lock", keeper.lock.name, 5_000);
      expect(again?.token).toBeGreaterThan(token);
    });
  });

  it("releases it by itself", async () => {
    await withKeeper(beside, async ({ lock }) => {
      await until(async () => (await lock.holder()) === "", { timeout: LINGERING.linger + 5_000 });
    });
  });

  it("gives it a TTL no longer than the window", async () => {
    await withKeeper(beside, async ({ lock }) => {
      expect(await lock.left()).toBeLessThanOrEqual(STAY_WINDOW);
    });
  });

  it.each(["SIGKILL", "SIGTERM"] as const)("ended by %s: others wait for a window", async (signal) => {
    await withKeeper(beside, async (keeper) => {
      keeper.actor.kill(signal);
      await keeper.actor.exit;
      expect((await turn(keeper)).waited).toBeLessThan(A_WINDOW);
    });
  });

  it("stopped: others wait for a window; when it resumes, it does not believe that it has the lock", async () => {
    await withKeeper(beside, async (keeper) => {
      const { actor, lock } = keeper;
      actor.kill("SIGSTOP");
      const [lease, waited] = await timed(beside.here.locks.lock(lock.name).lock());
      expect(waited).toBeLessThan(A_WINDOW);
      const asked = actor.call("acquire", "lock", lock.name, 0); // read as soon as it goes on
      actor.kill("SIGCONT");
      expect(await asked).toBeNull();
      expect(lease.held).toBe(true);
      const next = actor.call("acquire", "lock", lock.name, 10_000);
      await lease.unlock();
      expect((await next)?.token).toBeGreaterThan(lease.token);
    });
  });

  it("stopped: `tryLock()` of others gets null though no caller is inside, and the lease if it may wait", async () => {
    await withKeeper(beside, async ({ actor, lock: { name } }) => {
      actor.kill("SIGSTOP");
      const lock = beside.here.locks.lock(name);
      expect(await lock.tryLock()).toBeNull();
      const lease = await lock.tryLock(A_WINDOW + 30_000);
      expect(lease?.held).toBe(true);
      await lease?.unlock();
      actor.kill("SIGCONT");
    });
  });

  it("that closes its client leaves it free", async () => {
    await withKeeper(beside, async (keeper) => {
      await keeper.actor.call("close");
      expect(await keeper.lock.holder()).toBe("");
    });
  });

  it("whose event loop is blocked: others wait until it resumes, or for a window", async () => {
    await withKeeper(beside, async (keeper) => {
      const blocked = keeper.actor.call("block", 1_500);
      const { waited } = await turn(keeper);
      await blocked;
      expect(waited).toBeLessThan(A_WINDOW);
    });
  });

  it("that was blocked past the lock's TTL does not believe that it has it", async () => {
    await withKeeper(beside, async (keeper) => {
      const { actor, lock } = keeper;
      const blocked = actor.call("block", STAY_WINDOW + 500);
      const asked = actor.call("acquire", "lock", lock.name, 0);
      const lease = await beside.here.locks.lock(lock.name).lock();
      await blocked;
      expect(await asked).toBeNull();
      expect(lease.held).toBe(true);
      await lease.unlock();
    });
  });

  it("cut off from Redis: no longer takes it, and others wait for a window", async () => {
    await withKeeper(beside, async (keeper) => {
      const { actor, proxy, lock } = keeper;
      proxy.refuse(true);
      proxy.cut();
      const refused = actor.call("acquire", "lock", lock.name, 0).catch((error) => error.code);
      const { waited, token } = await turn(keeper);
      expect(waited).toBeLessThan(A_WINDOW);
      // Before it sees the end of its connection it may have taken the lock from memory; that turn
      // is over now.
      const got = await refused;
      if (got !== null && typeof got === "object") expect(got.token).toBeLessThan(token);
      else expect(["LOCK_UNAVAILABLE", null]).toContain(got);
      proxy.refuse(false);
      const next = await actor.call("acquire", "lock", lock.name, 10_000);
      expect(next?.token).toBeGreaterThan(token);
    });
  });

  it("whose connections are half open: no longer takes it without asking, and others wait for a window", async () => {
    await withKeeper(beside, async (keeper) => {
      const { actor, proxy, lock } = keeper;
      proxy.freeze();
      const refused = actor.call("acquire", "lock", lock.name, 0).catch((error) => error.code);
      const { waited, token } = await turn(keeper);
      expect(waited).toBeLessThan(A_WINDOW);
      proxy.thaw();
      const got = await refused;
      // Within 100 ms of the last answer it may have taken the lock from memory; it is over now.
      if (got !== null && typeof got === "object") expect(got.token).toBeLessThan(token);
      const next = await actor.call("acquire", "lock", lock.name, 10_000).catch(() => null);
      if (next) expect(next.token).toBeGreaterThan(token);
    });
  });

  it("whose subscriber connection is cut releases it", async () => {
    await withKeeper(beside, async ({ proxy, lock }) => {
      proxy.cut("subscribers");
      const [, waited] = await timedAwake(until(async () => (await lock.holder()) === ""));
      expect(waited).toBeLessThan(AT_ONCE);
    });
  });

  it("that never receives the recall releases it when its time is over", async () => {
    await withKeeper(beside, async (keeper) => {
      keeper.proxy.freeze("subscribers");
      expect((await turn(keeper)).waited).toBeLessThan(LINGERING.linger + 1_000);
    });
  });
});

describe("the key of a cached lock is lost", () => {
  it.each(["DEL", "FLUSHALL", "expiry"] as const)(
    "%s: the next caller has it at once, alone",
    async (how) => {
      await withKeeper(beside, async (keeper) => {
        const { actor, lock } = keeper;
        if (how === "DEL") await beside.here.redis.del(lock.keys.lock);
        else if (how === "FLUSHALL") await beside.here.redis.flushall();
        else await beside.here.redis.pexpire(lock.keys.lock, 1);
        const [lease, waited] = await timedAwake(until(() => beside.here.locks.lock(lock.name).tryLock()));
        expect(waited).toBeLessThan(AT_ONCE);
        // It is older than 100 ms by now, or was not there in time: it must ask.
        const before = Date.now();
        await until(() => Date.now() > before + 150);
        expect(await actor.call("acquire", "lock", lock.name, 0)).toBeNull();
        const next = actor.call("acquire", "lock", lock.name, 10_000);
        await lease.unlock();
        expect((await next)?.token).toBeGreaterThan(lease.token);
      });
    },
  );

  it("the server restarts without data: no process believes that it has the lock", async () => {
    await withKeeper(beside, async (keeper) => {
      const { actor, lock } = keeper;
      await beside.server.kill();
      await beside.server.restart();
      const lease = await beside.here.locks.lock(lock.name).lock();
      expect(await actor.call("acquire", "lock", lock.name, 0).catch(() => null)).toBeNull();
      expect(lease.held).toBe(true);
      await lease.unlock();
      expect((await actor.call("acquire", "lock", lock.name, 10_000))?.token).toBeGreaterThan(lease.token);
    });
  });
});
