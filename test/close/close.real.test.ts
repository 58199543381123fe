// On a real Redis; in virtual time: test/world/directed/close.test.ts.

import { describe, expect, it } from "vitest";
import { runs, Stage, timed } from "../support/stage.ts";
import { until } from "../support/until.ts";

// The client is closed while a fault is on its way, in the steps that close.test.ts does not go
// through: yielding, releasing, looking again, leaving, waiting for Redis to come back.

const stage = new Stage({ near: { client: { localHandoffs: 0 } } });
const closed = { name: "ClientClosedError", code: "CLIENT_CLOSED" };
const outcome = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "done",
    (error: unknown) => error,
  );

describe("close()", () => {
  it("while a yield is unanswered: the holder's unlock completes, its waiter is refused, and the next client gets the lock", async () => {
    const { near, far, lock, proxy } = stage;
    await stage.warm(near);
    const lease = await near.locks.lock(lock.name).lock();
    const other = far.locks.lock(lock.name).lock();
    await lock.queued(1);
    const own = outcome(near.locks.lock(lock.name).lock());
    proxy.freeze("commands");
    const unlocked = outcome(lease.unlock());
    const closing = near.locks.close();
    expect(await own).toMatchObject(closed);
    proxy.thaw();
    await closing;
    expect(await unlocked).toBe("done");
    await (await other).unlock();
    await lock.gone();
  });

  it("while a release is unanswered and its reply is lost: the lock is free, or the next client's", async () => {
    const { near, far, lock, proxy } = stage;
    const lease = await near.locks.lock(lock.name).lock();
    const other = far.locks.lock(lock.name).lock();
    await lock.queued(1);
    const dropped = proxy.dropReply(runs("release"));
    const unlocked = outcome(lease.unlock());
    const [, took] = await timed(near.locks.close());
    await dropped;
    expect(took).toBeLessThan(1_600); // the reply timeout would be 5 s
    expect(await unlocked).toBe("done"); // ioredis sent it again
    await (await other).unlock();
    await lock.gone();
  });

  it("while a re-check is unanswered: its place is given up", async () => {
    const { near, far, lock, proxy } = stage;
    const held = await far.locks.lock(lock.name).lock();
    const waiting = outcome(near.locks.lock(lock.name).lock());
    await lock.queued(1);
    const kept = await proxy.holdCommand(runs("acquire", "again"));
    const closing = near.locks.close();
    expect(await waiting).toMatchObject(closed);
    await closing;
    expect(await lock.waiters()).toEqual([]);
    await kept.deliver(); // neither does its late copy bring it back
    expect(await lock.waiters()).toEqual([]);
    await held.unlock();
    await lock.gone();
  });

  it("while a grant is under way: the lock goes on to the next client", async () => {
    const { near, far, lock, proxy } = stage;
    const held = await far.locks.lock(lock.name).lock();
    const waiting = outcome(near.locks.lock(lock.name).lock());
    await lock.queued(1);
    const next = (await stage.join()).locks.lock(lock.name).lock();
    await lock.queued(2);
    proxy.freeze("subscribers");
    await held.unlock(); // it is the owner now, and does not know
    expect(await lock.holder()).toContain(near.locks.id);
    await near.locks.close();
    expect(await waiting).toMatchObject(closed);
    const [lease, waited] = await timed(next);
    expect(waited).toBeLessThan(350); // by message; the window would be 3 s
    await lease.unlock();
    await lock.gone();
  });

  it("while a place is given up and the reply is lost", async () => {
    const { near, far, lock, proxy } = stage;
    const held = await far.locks.lock(lock.name).lock();
    const dropped = proxy.dropReply(runs("leave"));
    await stage.giveUp(near);
    await Promise.all([near.locks.close(), dropped]);
    expect(await lock.waiters()).toEqual([]);
    await held.unlock();
    await lock.gone();
  });

  it.each([0, 700])("while Redis is away: it waits no longer than its grace (%i ms)", async (grace) => {
    const { near, far, lock, proxy } = stage;
    near.locks.on("error", () => {});
    const lease = await near.locks.lock(`${lock.name}:held`).lock({ lease: 20_000 });
    const held = await far.locks.lock(lock.name).lock();
    const waiting = outcome(near.locks.lock(lock.name).lock());
    await lock.queued(1);
    proxy.refuse(true);
    proxy.cut("all");
    await until(() => near.redis.status !== "ready");
    const [, took] = await timed(near.locks.close({ grace }));
    // For the holder, and for what is to be taken back; a command would be waited for for 5 s.
    expect(took).toBeLessThan(Math.max(1_600, 3 * (2 * grace + 100)));
    expect(await waiting).toMatchObject(closed);
    expect(lease.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "closed" });
    await held.unlock(); // the entry stands for nobody: nobody is subscribed
    await lock.gone();
  });

  it("while the caller tries again after a failure", async () => {
    const { near, far, lock, proxy } = stage;
    const held = await far.locks.lock(lock.name).lock();
    await far.redis.config("SET", "min-replicas-to-write", "1"); // the caller cannot be queued
    proxy.record();
    const waiting = outcome(near.locks.lock(lock.name).lock());
    const tries = () => proxy.commands.filter(({ command }) => runs("acquire", "queue")(command)).length;
    await until(() => tries() >= 2, { what: "it to try again" });
    await near.locks.close({ grace: 500 });
    expect(await waiting).toMatchObject(closed);
    const before = tries();
    await far.redis.config("SET", "min-replicas-to-write", "0");
    await held.unlock();
    await lock.gone();
    expect(tries()).toBe(before);
  });
});
