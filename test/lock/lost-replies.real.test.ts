// On a real Redis; in virtual time: test/world/directed/lost-replies.test.ts.

import { describe, expect, it } from "vitest";
import { onNodeRedis } from "../support/carrier.ts";
import { nextConnection } from "../support/link.ts";
import { runs, Stage, timed } from "../support/stage.ts";
import { until } from "../support/until.ts";

// Redis executes a command, its reply is lost, and ioredis does not send it again: the caller sees
// it fail. (That it is sent again is in resent-commands.faults.test.ts.) Whatever it did is taken
// back or found again, and nobody is let in twice.

const redis = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 };
const stage = new Stage({ near: { redis, client: { localHandoffs: 0 } } });
const unavailable = { code: "LOCK_UNAVAILABLE" };

describe("the reply is lost and the command fails", () => {
  it("acquire that queues: its entry is left, the caller queues again and gets its turn", async ({
    annotate,
  }) => {
    const { near, far, lock, proxy } = stage;
    const held = await far.locks.lock(lock.name).lock();
    const dropped = proxy.dropReply(runs("acquire", "queue"));
    const waiting = near.locks.lock(lock.name).lock();
    await dropped;
    const [first] = await lock.waiters();
    await until(
      async () => !(await lock.waiters()).includes(first ?? "") && (await lock.waiters()).length === 1,
      {
        what: "another place in the queue",
      },
    );
    await held.unlock();
    const [lease, waited] = await timed(waiting);
    await annotate(`the lock after ${waited} ms`);
    expect(lease.token).toBeGreaterThan(held.token);
    await lease.unlock();
    await lock.gone();
  });

  it("a re-check of a parked caller: it keeps its place", async () => {
    const { near, far, lock, proxy } = stage;
    const held = await far.locks.lock(lock.name).lock();
    const waiting = near.locks.lock(lock.name).lock();
    await lock.queued(1);
    const before = await lock.waiters();
    const back = nextConnection(near.redis);
    await proxy.dropReply(runs("acquire", "again"));
    await back();
    expect(await lock.waiters()).toEqual(before);
    await held.unlock();
    await (await waiting).unlock();
    await lock.gone();
  });

  it("a re-check that says that the caller has the lock: the next one says it again, within the window", async ({
    annotate,
  }) => {
    const { near, far, lock, proxy } = stage;
    const held = await far.locks.lock(lock.name).lock();
    const waiting = near.locks.lock(lock.name).lock();
    await lock.queued(1);
    proxy.partition("subscribers"); // the grant is not heard
    const dropped = proxy.dropReply(runs("acquire", "again"));
    await held.unlock();
    const granted = await lock.holder();
    const [lease, waited] = await timed(Promise.all([waiting, dropped]).then(([one]) => one));
    await annotate(`the lock after ${waited} ms`);
    expect(granted).toContain(near.locks.id);
    // the turn was not lost: that would be a window, and another hold
    expect(await lock.holder()).toBe(granted);
    await lease.unlock();
    await lock.gone();
  });

  it("release without a waiter: unlock() rejects, and the lock is free", async () => {
    const { near, lock, proxy } = stage;
    const lease = await near.locks.lock(lock.name).lock();
    const dropped = proxy.dropReply(runs("release"));
    await expect(lease.unlock()).rejects.toMatchObject(unavailable);
    await dropped;
    await lock.gone();
    expect(lease.held).toBe(false);
    await lease.unlock();
  });

  it("yield: unlock() rejects, and both waiters get their turns", async () => {
    const { far, lock, proxy } = stage;
    const { held, others, own } = await stage.contended();
    const dropped = proxy.dropReply(runs("yield"));
    await expect(held.unlock()).rejects.toMatchObject(unavailable);
    await dropped;
    const second = await others;
    expect(await lock.holder()).toContain(far.locks.id);
    await lock.queued(1); // the entry that the yield made is left, another one stands for the caller
    await second.unlock();
    const third = await own;
    expect(third.token).toBeGreaterThan(second.token);
    await third.unlock();
    await lock.gone();
  });

  it("a claim: the granted hold is left, and the caller acquires anew", async ({ annotate }) => {
    const { near, far, lock, proxy } = stage;
    const held = await far.locks.lock(lock.name).lock();
    const waiting = near.locks.lock(lock.name).lock({ lease: 20_000 });
    await lock.queued(1);
    const dropped = proxy.dropReply(runs("renew"));
    await held.unlock();
    const [lease, waited] = await timed(Promise.all([waiting, dropped]).then(([one]) => one));
    await annotate(`the lock after ${waited} ms`);
    expect(lease.remaining).toBeGreaterThan(15_000);
    expect(await lock.holder()).toContain(near.locks.id);
    expect(waited).toBeLessThan(3_000); // the whole of its lease would be 20 s
    await lease.unlock();
    await lock.gone();
  });

  it("a renewal: an error event, a retry, and the lease goes on", async () => {
    const { lock, proxy } = stage;
    const party = await stage.join({ url: proxy.url, redis, client: { leaseTime: 1_500 } });
    const errors: unknown[] = [];
    party.locks.on("error", (error) => errors.push(error));
    const lease = await party.locks.lock(lock.name).lock();
    await proxy.dropReply(runs("renew"));
    await new Promise((renewed) => party.locks.once("renew", renewed));
    expect(errors).toMatchObject([unavailable]);
    expect(lease.held).toBe(true);
    await lease.unlock();
  });

  it("an extension: it rejects, and the lease stays as it was", async () => {
    const { near, lock, proxy } = stage;
    const lease = await near.locks.lock(lock.name).lock({ lease: 10_000 });
    const back = nextConnection(near.redis);
    const dropped = proxy.dropReply(runs("renew"));
    await expect(lease.extend(40_000)).rejects.toMatchObject(unavailable);
    await dropped;
    expect([lease.held, lease.signal.aborted]).toEqual([true, false]);
    expect(lease.remaining).toBeLessThan(10_000);
    await back();
    await lease.unlock();
    await lock.gone();
  });

  it("an extension, while Redis is away for longer than the known lease: the lock is given back", async ({
    annotate,
  }) => {
    const { lock, proxy } = stage;
    const { locks } = await stage.join({ url: proxy.url, redis, client: { replyTimeout: 300 } });
    const lease = await locks.lock(lock.name).lock({ lease: 1_000 });
    const dropped = proxy.dropReply(runs("renew"));
    await lease.extend(600_000).catch(() => {});
    proxy.refuse(true);
    proxy.cut();
    await dropped;
    expect(await lock.left()).toBeGreaterThan(500_000);
    await until(() => !lease.held);
    const start = performance.now();
    // A hold of one second, and a command that is on its way for 300 ms.
    await until(() => performance.now() > start + 2 * (1_000 + 300), {
      what: "all that was known of to end",
    });
    proxy.refuse(false);
    const [, took] = await timed(
      until(async () => (await lock.left()) === -2, { what: "the lock to be free" }),
    );
    await annotate(`free ${took} ms after the return`);
    await lease.unlock().catch(() => {});
  });

  it("leave: sent again, and the holder keeps the lock", async () => {
    const { near, far, lock, proxy } = stage;
    const held = await far.locks.lock(lock.name).lock();
    const dropped = proxy.dropReply(runs("leave"));
    await stage.giveUp(near);
    await dropped;
    await lock.queued(0);
    expect([held.held, await lock.holder()]).toEqual([true, expect.stringContaining(far.locks.id)]);
    await held.unlock();
    await lock.gone();
  });

  it("force-release: it rejects, and has happened; the waiter has the lock", async () => {
    const { near, far, lock, proxy } = stage;
    const held = await (await stage.join()).locks.lock(lock.name).lock();
    const waiting = far.locks.lock(lock.name).lock();
    await lock.queued(1);
    const dropped = proxy.dropReply(runs("forceRelease"));
    await expect(near.locks.lock(lock.name).forceUnlock()).rejects.toMatchObject(unavailable);
    await dropped;
    const lease = await waiting;
    await expect(held.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    expect(lease.held).toBe(true);
    await lease.unlock();
    await lock.gone();
  });
});

// node-redis fails it, and its link sends it again.
describe.skipIf(onNodeRedis)("a reply is lost and ioredis drops the command silently", () => {
  // What it does when it reconnects and may not send again: nothing is refused before the reply
  // timeout, but by us.
  const quiet = { autoResendUnfulfilledCommands: false };
  const silent = () => stage.join({ url: stage.proxy.url, redis: quiet });

  it("a re-check: it does not cost the turn", async ({ annotate }) => {
    const { far, lock, proxy } = stage;
    const { locks } = await silent();
    const held = await far.locks.lock(lock.name).lock();
    const waiting = locks.lock(lock.name).lock();
    await lock.queued(1);
    proxy.partition("subscribers");
    const dropped = proxy.dropReply(runs("acquire", "again"));
    await held.unlock();
    const granted = await lock.holder();
    const [lease, waited] = await timed(Promise.all([waiting, dropped]).then(([one]) => one));
    await annotate(`the lock after ${waited} ms`);
    expect(granted).toContain(locks.id);
    expect(await lock.holder()).toBe(granted);
    await lease.unlock();
  });
});
