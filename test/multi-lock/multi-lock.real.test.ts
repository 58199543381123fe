// On a real Redis; in virtual time: test/world/directed/multi-lock.test.ts,
// test/world/directed/multi-lock-faults.test.ts.

import { describe, expect, it } from "vitest";
import { isLockLost } from "../../src/index.ts";
import { failure } from "../contract/observe.ts";
import { three } from "../support/multi-locks.ts";
import type { HeldCommand } from "../support/proxy-connection.ts";
import { runs } from "../support/stage.ts";
import type { Match } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";
import { MultiLockStage } from "./stage.ts";

// The commands for several locks, and what can happen to them on the way.

const stage = new MultiLockStage(1_000);
const { look, gone, holders, scene } = stage;
const unavailable = { code: "LOCK_UNAVAILABLE" };

/** The command about this one of several locks. */
const about = (script: "acquire" | "release", name: string): Match => {
  const match = runs(script);
  return (command) => match(command) && command[3] === look(name).keys.lock;
};

/**
 * Redis executes the tries of this call, and the connection breaks before any of them is answered.
 * It is refused from then on.
 */
async function loseAnswers<T>(
  names: readonly string[],
  call: () => T,
): Promise<{ call: T; first: string[] }> {
  const { proxy } = stage;
  proxy.delay(60_000, { direction: "to client", which: "commands" });
  const made = call();
  await until(async () => !(await holders(names)).includes(""), { what: "all to be taken" });
  const first = await holders(names);
  proxy.refuse(true);
  proxy.cut("commands");
  proxy.delay(0);
  return { call: made, first };
}

async function expectNoChange(names: readonly string[], kept: HeldCommand): Promise<void> {
  const before = await scene(names);
  await kept.deliver();
  expect(await scene(names)).toEqual(before);
}

describe("the reply is lost and the command is sent again", () => {
  it("of the acquire: they are held once, by one lease", async () => {
    const names = three();
    const { locks } = await stage.join({ url: stage.proxy.url });
    await locks.check(); // connected
    const { call, first } = await loseAnswers(names, () =>
      locks.multiLock(names).lock({ wait: 4_000, lease: 5_000 }),
    );
    await until(async () => (await look(names[0]).left()) < 4_500, { what: "some of the lease to go by" });
    stage.proxy.refuse(false);
    const lease = await call;
    expect([lease.held, await holders(names)]).toEqual([true, first]); // by the same holds
    for (const name of names) expect(await look(name).left()).toBeGreaterThan(4_500); // all of it again (R2)
    await lease.unlock();
    await gone(names);
  });

  it("of the acquire, and one was taken away meanwhile: later members are given back, and acquired anew", async () => {
    const names = three();
    const { near, far, proxy } = stage;
    const { call, first } = await loseAnswers(names, () => near.locks.multiLock(names).lock());
    await far.redis.del(look(names[1]).keys.lock);
    const other = await far.locks.lock(names[1]).lock();
    proxy.refuse(false);
    await until(async () => (await look(names[1]).waiters()).length === 1, {
      what: "the place of the next hold",
    });
    expect((await holders(names))[2]).toBe(""); // nobody waits with a later one in hand
    await other.unlock();
    const lease = await call;
    const now = await holders(names);
    expect(now.slice(1).every((holder, i) => holder !== "" && holder !== first[i + 1])).toBe(true);
    await lease.unlock();
    await gone(names);
  });

  it("of the release: no loss is reported, also if another caller holds one by now", async () => {
    const names = three();
    const { near, far, proxy } = stage;
    const lease = await near.locks.multiLock(names).lock();
    const waiting = far.locks.lock(names[1]).lock();
    await look(names[1]).queued(1);
    const dropped = proxy.dropReply(about("release", names[1]));
    await lease.unlock();
    await dropped;
    const next = await waiting;
    expect(next.held).toBe(true);
    await next.unlock();
    await gone(names);
  });
});

describe("the reply is lost and the command fails", () => {
  const redis = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 };

  it("of the acquire: its caller gets an error, and nothing stays", async () => {
    const names = three();
    const { locks } = await stage.join({ url: stage.proxy.url, redis });
    locks.on("error", () => {}); // giving back what it got fails too, with node-redis, at first
    const dropped = stage.proxy.dropReply(about("acquire", names[1]));
    expect(await failure(locks.multiLock(names).lock())).toMatchObject(unavailable);
    await dropped;
    await gone(names);
  });

  it("of the release: it rejects for each, and all are released", async () => {
    const names = three();
    const { locks } = await stage.join({ url: stage.proxy.url, redis });
    const lease = await locks.multiLock(names).lock();
    const dropped = stage.proxy.dropReply(runs("release"));
    const error = await failure(lease.unlock());
    await dropped;
    expect((error as AggregateError).errors).toMatchObject(
      names.map((lockName) => ({ ...unavailable, lockName })),
    );
    expect(isLockLost(error)).toBe(false);
    await gone(names);
  });
});

describe("a late copy changes nothing", () => {
  it("of an acquire whose leases are given back: it is stale, with the locks free or held by others", async () => {
    const { near, far, proxy } = stage;
    await stage.warm(near); // the server's clock is known
    for (const ends of ["free", "held"]) {
      const names = three();
      const keeping = proxy.holdCommand(runs("acquire"));
      const waiting = near.locks.multiLock(names).lock();
      const kept = await keeping;
      await (await waiting).unlock();
      const other = ends === "held" ? await far.locks.lock(names[1]).lock() : null;
      const [seconds] = await far.redis.time();
      await until(async () => Number((await far.redis.time())[0]) > Number(seconds) + 2, {
        what: "more than the reply timeout to pass",
      });
      await expectNoChange(names, kept);
      await other?.unlock();
      await gone(names);
    }
  });

  it("of an acquire, at once, while others hold an earlier member, or all of them", async () => {
    const { near, far, proxy } = stage;
    for (const count of [1, 3]) {
      const names = three();
      const keeping = proxy.holdCommand(about("acquire", names[1]));
      const waiting = near.locks.multiLock(names).lock();
      const kept = await keeping;
      await (await waiting).unlock();
      const other = await far.locks.multiLock(names.slice(0, count)).lock();
      await expectNoChange(names, kept);
      await other.unlock();
      await gone(names);
    }
  });

  it("of an acquire while its own leases are held, and after one of them was lost", async () => {
    const { near, far, proxy } = stage;
    const names = three();
    const keeping = proxy.holdCommand(about("acquire", names[1]));
    const waiting = near.locks.multiLock(names).lock();
    const kept = await keeping;
    const lease = await waiting;
    await far.redis.del(look(names[0]).keys.lock);
    await expectNoChange(names, kept); // it does not take the lost one again
    expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST", lockName: names[0] });
    await gone(names);
  });

  it("of a release: the holder of that moment keeps the locks", async () => {
    const { near, far, proxy } = stage;
    const names = three();
    const lease = await near.locks.multiLock(names).lock();
    const waiting = far.locks.lock(names[2]).lock();
    await look(names[2]).queued(1);
    const keeping = proxy.holdCommand(about("release", names[2]));
    const unlocked = lease.unlock();
    const kept = await keeping;
    await unlocked;
    const [third, first] = [await waiting, await far.locks.lock(names[0]).lock()];
    await expectNoChange(names, kept);
    expect([first.held, third.held]).toEqual([true, true]);
    await first.unlock();
    await third.unlock();
    await gone(names);
  });
});
