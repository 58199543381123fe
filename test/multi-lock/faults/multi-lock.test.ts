import { afterEach, describe, expect, it } from "vitest";
import { isLockLost, type LockOptions, LockUnavailableError } from "../../../src/index.ts";
import { failure } from "../../contract/observe.ts";
import { three } from "../../support/multi-locks.ts";
import { Onlooker } from "../../support/onlooker.ts";
import type { HeldCommand } from "../../support/proxy-connection.ts";
import { runs, Stage, timed } from "../../support/stage.ts";
import type { Match } from "../../support/tcp-proxy.ts";
import { until } from "../../support/until.ts";

// The commands for several locks, and what can happen to them on the way, at the server and at the caller.

const REPLY_TIMEOUT = 1_000;
/** A third of what a command may take by default. */
const PROMPTLY = 5_000 / 3;
const stage = new Stage({ near: { client: { localPasses: 0, replyTimeout: REPLY_TIMEOUT } } });
const unavailable = { code: "LOCK_UNAVAILABLE" };

const look = (name: string): Onlooker => new Onlooker(stage.far.redis, name);
const gone = (names: readonly string[]): Promise<unknown> =>
  Promise.all(names.map((name) => look(name).gone()));
const holders = (names: readonly string[]): Promise<string[]> =>
  Promise.all(names.map((name) => look(name).holder()));

/** What Redis knows of the locks, but for the time that is left. */
const scene = (names: readonly string[]): Promise<unknown> =>
  Promise.all(
    names.map(async (name) => {
      const { lock, queue, clients } = look(name).keys;
      const { redis } = stage.far;
      return [
        await redis.get(lock),
        await redis.zrange(queue, "0", "-1"),
        await redis.zrange(clients, "0", "-1", "WITHSCORES"),
      ];
    }),
  );

/** The command about this one of several locks. */
const about = (script: "acquire" | "release", name: string): Match => {
  const match = runs(script);
  return (command) => match(command) && command[3] === look(name).keys.lock;
};

/** Redis executes the tries of this call, and the connection breaks before any of them is answered. It is refused from then on. */
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

  it("of the acquire, and one was taken away between: what stands behind it is given back, and taken anew", async () => {
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

  it("of the release: nobody hears of a loss, also where somebody else holds one by now", async () => {
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

  it("of the acquire: its caller is told, and nothing stays", async () => {
    const names = three();
    const { locks } = await stage.join({ url: stage.proxy.url, redis });
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

  it("of an acquire, at once, while others hold the lock before it, or hold them all", async () => {
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

type Three = ReturnType<typeof three>;

describe("a server that refuses", () => {
  afterEach(async () => {
    const { redis } = stage.far;
    await redis.config("SET", "maxmemory", "0");
    await redis.config("SET", "min-replicas-to-write", "0");
    await redis.call("ACL", "SETUSER", "default", "+@all");
  });

  it("for want of memory: none is taken; what is held is released and handed on", async () => {
    const { near, far } = stage;
    // What is held comes first in the order, so that it is asked for before anything that there is no room for.
    const [names, others] = [three(), three()].sort(([a], [b]) => (a < b ? -1 : 1)) as [Three, Three];
    const lease = await near.locks.multiLock(names).lock();
    const waiting = far.locks.lock(names[1]).lock();
    await look(names[1]).queued(1);
    await far.redis.config("SET", "maxmemory", "1");
    expect(await failure(near.locks.multiLock(others).tryLock())).toMatchObject({
      ...unavailable,
      cause: { message: expect.stringContaining("OOM") },
    });
    expect(await holders(others)).toEqual(["", "", ""]);
    expect(await near.locks.multiLock([...names, ...others]).tryLock()).toBeNull(); // it is busy, whatever there is room for
    await lease.extend(40_000);
    await lease.unlock();
    const next = await waiting;
    await next.unlock();
    await far.redis.config("SET", "maxmemory", "0");
    const again = await near.locks.multiLock(others).tryLock();
    await again?.unlock();
    await gone([...names, ...others]);
  });

  it("every write: none is taken, none is released by halves", async () => {
    const { near, far } = stage;
    const [names, others] = [three(), three()];
    const lease = await near.locks.multiLock(names).lock();
    const before = await scene(names);
    await far.redis.config("SET", "min-replicas-to-write", "1");
    expect(await failure(near.locks.multiLock(others).tryLock())).toMatchObject({
      cause: { message: expect.stringContaining("NOREPLICAS") },
    });
    const error = await failure(lease.unlock());
    expect((error as AggregateError).errors).toMatchObject(
      names.map((lockName) => ({
        ...unavailable,
        lockName,
        cause: { message: expect.stringContaining("NOREPLICAS") },
      })),
    );
    expect([await scene(names), await holders(others)]).toEqual([before, ["", "", ""]]);
    await far.redis.config("SET", "min-replicas-to-write", "0");
    await gone([...names, ...others]); // tried again behind
  });

  it.each(["set", "del", "zpopmin", "publish"])(
    "a right, %s: it is named before anything is written",
    async (right) => {
      const { far } = stage;
      const names = three();
      await far.redis.call("ACL", "SETUSER", "default", `-${right}`);
      const { locks } = await stage.join();
      const error = await failure(locks.multiLock(names).tryLock());
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(String(error)).toMatch(new RegExp(`NOPERM.*\\b${right}\\b`));
      await far.redis.call("ACL", "SETUSER", "default", "+@all");
      expect(await holders(names)).toEqual(["", "", ""]);
    },
  );

  it("because one key holds something else: none is taken", async () => {
    const { near, far } = stage;
    const names = three();
    await far.redis.set(look(names[2]).keys.lock, "something else", "PX", 5_000);
    expect(String(await failure(near.locks.multiLock(names).tryLock()))).toContain("WRONGTYPE");
    expect(await far.redis.exists(look(names[0]).keys.lock, look(names[1]).keys.lock)).toBe(0);
    await far.redis.del(look(names[2]).keys.lock);
  });
});

describe("a server that is silent", () => {
  it("is told in time, and what the command took all the same is given back", async () => {
    const names = three();
    const { near, proxy } = stage;
    proxy.freeze();
    const [error, waited] = await timed(failure(near.locks.multiLock(names).tryLock(200)));
    expect(error).toMatchObject(unavailable);
    expect(waited).toBeLessThan(3 * REPLY_TIMEOUT);
    proxy.thaw();
    await gone(names);
  });

  it("does not hold up an abort, or a close", async () => {
    const [names, others] = [three(), three()];
    const { proxy } = stage;
    const [first, second] = [await stage.join({ url: proxy.url }), await stage.join({ url: proxy.url })];
    proxy.freeze();
    const controller = new AbortController();
    const aborted = failure(first.locks.multiLock(names).lock({ signal: controller.signal }));
    const closed = failure(second.locks.multiLock(others).lock());
    controller.abort("enough");
    const closing = second.locks.close({ grace: 300 });
    const [[reason, error], waited] = await timed(Promise.all([aborted, closed]));
    expect([reason, error]).toMatchObject(["enough", { code: "CLIENT_CLOSED" }]);
    expect(waited).toBeLessThan(PROMPTLY);
    proxy.thaw();
    await closing;
    await gone([...names, ...others]);
  });

  /** Falls silent when what was held meanwhile is confirmed. */
  async function silentAtConfirmation(names: readonly [string, string, string], options: LockOptions) {
    const { far, proxy } = stage;
    const { locks } = await stage.join({ url: proxy.url });
    locks.on("error", () => {}); // renewals, which are not answered either
    const held = await far.locks.lock(names[2]).lock();
    const call = failure(locks.multiLock(names).lock({ lease: 10_000, ...options }));
    await look(names[2]).queued(1);
    let isReached = false;
    const confirming = new Promise<void>((reached) => {
      void proxy.dropCommand((command) => {
        if (isReached || !runs("renew")(command)) return false;
        proxy.freeze("commands"); // this one and what comes behind it
        isReached = true;
        reached();
        return false;
      });
    });
    await held.unlock();
    await confirming;
    return { call };
  }

  it("does not hold up an abort while what was waited for is confirmed", async () => {
    const names = three();
    const controller = new AbortController();
    const { call } = await silentAtConfirmation(names, { signal: controller.signal });
    controller.abort("enough");
    const [reason, waited] = await timed(call);
    expect([reason, waited < PROMPTLY]).toEqual(["enough", true]);
    stage.proxy.thaw();
    await gone(names);
  });

  it("does not take longer than the call would wait, either", async () => {
    const names = three();
    const { call } = await silentAtConfirmation(names, { wait: 700 });
    const [error, waited] = await timed(call);
    expect(error).toMatchObject(unavailable);
    expect(waited).toBeLessThan(PROMPTLY);
    stage.proxy.thaw();
    await gone(names);
  });
});
