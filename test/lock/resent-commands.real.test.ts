// On a real Redis; in virtual time: test/world/directed/resent-commands.test.ts.

import { beforeEach, describe, expect, it } from "vitest";
import { freshName, type Party } from "../support/fixture.ts";
import { runs, Stage } from "../support/stage.ts";
import type { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// A reply is lost, ioredis reconnects and sends the command again: every script is executed twice.

const stage = new Stage({ near: { client: { localHandoffs: 0 } } });
let proxy: TcpProxy;
let near: Party;
let far: Party;
let name: string;
beforeEach(() => {
  ({ proxy, near, far } = stage);
  name = stage.lock.name;
});

const waiters = async (): Promise<number> => (await far.locks.lock(name).inspect()).waiters?.length ?? 0;
const holder = async (): Promise<string | undefined> => (await far.locks.lock(name).inspect()).holder?.id;
const isFree = async (): Promise<boolean> => (await far.redis.exists(`holdfast:{${name}}`)) === 0;

describe("the reply is lost and the command is sent again", () => {
  it("acquire that queues: one entry, and its turn comes", async () => {
    const held = await far.locks.lock(name).lock();
    // opens the subscriber
    await near.locks.lock(freshName()).withLock(() => near.locks.lock(name).tryLock(50));
    const dropped = proxy.dropReply(runs("acquire"));
    const waiting = near.locks.lock(name).lock();
    await dropped;
    await until(async () => (await waiters()) === 1, { what: "one entry" });
    await held.unlock();
    const lease = await waiting;
    expect(lease.token).toBeGreaterThan(held.token);
    await lease.unlock();
    expect(await waiters()).toBe(0);
    expect(await isFree()).toBe(true);
  });

  it("release without a waiter: no loss is reported", async () => {
    const lease = await near.locks.lock(name).lock();
    const dropped = proxy.dropReply(runs("release"));
    await lease.unlock();
    await dropped;
    expect(await isFree()).toBe(true);
  });

  it("release that is executed again after two more callers had the lock: no loss is reported", async () => {
    const lease = await near.locks.lock(name).lock();
    const third = await stage.join();
    const second = far.locks
      .lock(name)
      .lock()
      .then(async (one) => one.unlock());
    await until(async () => (await waiters()) === 1);
    const last = third.locks.lock(name).lock();
    await until(async () => (await waiters()) === 2);
    const dropped = proxy.dropReply(runs("release"));
    proxy.refuse(true); // no reconnect before the chain has gone on
    const unlocked = lease.unlock();
    await dropped;
    await second;
    const held = await last;
    proxy.refuse(false);
    await unlocked;
    expect(held.held).toBe(true);
    await held.unlock();
  });

  it("yield: the lock goes round, one holder at a time", async () => {
    const lock = near.locks.lock(name);
    const lease = await lock.lock();
    let inside = 0;
    let most = 0;
    const enter = (one: Party): Promise<void> =>
      one.locks.lock(name).withLock(async () => {
        inside++;
        most = Math.max(most, inside);
        await one.redis.ping();
        inside--;
      });
    const other = enter(far);
    await until(async () => (await waiters()) === 1);
    const local = [enter(near), enter(near)];
    const dropped = proxy.dropReply(runs("yield"));
    await subscribed();
    await Promise.all([lease.unlock(), dropped]);
    await Promise.all([other, ...local]);
    expect(most).toBe(1);
    expect(await isFree()).toBe(true);
    expect(await waiters()).toBe(0);
  });

  it("renew: a claim, and a watchdog's renewal", async () => {
    const held = await far.locks.lock(name).lock();
    const waiting = near.locks.lock(name).tryLock(10_000, 20_000);
    await until(async () => (await waiters()) === 1);
    const dropped = proxy.dropReply(runs("renew"));
    await held.unlock();
    const lease = await waiting;
    await dropped;
    expect(lease?.remaining).toBeGreaterThan(15_000);
    const again = proxy.dropReply(runs("renew"));
    await Promise.all([lease?.extend(25_000), again]);
    expect(lease?.remaining).toBeGreaterThan(20_000);
    await lease?.unlock();
  });

  it("leave: the waiter is out of the queue, and the holder keeps the lock", async () => {
    const held = await far.locks.lock(name).lock();
    const dropped = proxy.dropReply(runs("leave"));
    await stage.giveUp(near);
    await dropped;
    await until(async () => (await waiters()) === 0);
    expect(await holder()).toContain(far.locks.id);
    await held.unlock();
  });

  it("force-release: only the first holder loses it", async () => {
    const held = await far.locks.lock(name).lock();
    const dropped = proxy.dropReply(runs("forceRelease"));
    const [forced] = await Promise.all([near.locks.lock(name).forceUnlock(), dropped]);
    expect(forced).toBe(false); // the answer of the second copy
    await expect(held.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  });
});

describe("a late copy", () => {
  it("of an acquire does nothing after its notAfter", async () => {
    const party = await stage.join({ url: proxy.url, client: { replyTimeout: 500 } });
    await party.locks.lock(name).isLocked();
    await (await party.locks.lock(freshName()).lock()).unlock(); // the server's clock is known now
    const holding = proxy.holdCommand(runs("acquire"));
    const lease = party.locks.lock(name).lock();
    const kept = await holding;
    const { token } = await lease;
    await (await lease).unlock();
    const [seconds, micros] = await far.redis.time();
    const asked = Number(seconds) * 1_000 + Number(micros) / 1_000;
    await until(async () => Number((await far.redis.time())[0]) * 1_000 > asked + 1_500, {
      what: "its time to pass",
    });
    await kept.deliver();
    expect(await isFree()).toBe(true);
    expect(token).toBeGreaterThan(0);
  });

  it("of a release does not touch a later hold", async () => {
    const first = await near.locks.lock(name).lock();
    const holding = proxy.holdCommand(runs("release"));
    const unlocked = first.unlock();
    const kept = await holding;
    await unlocked;
    const second = await near.locks.lock(name).lock();
    await kept.deliver();
    expect(await holder()).toContain(near.locks.id);
    await second.unlock();
  });
});

describe("an abandoned command leaves no key behind", () => {
  const paused = async (party: Party): Promise<void> => {
    await far.redis.client("PAUSE", 60_000, "WRITE"); // UNPAUSE ends it
    await expect(party.locks.lock(name).lock({ wait: 1_000 })).rejects.toMatchObject({
      code: "LOCK_UNAVAILABLE",
    });
    await far.redis.client("UNPAUSE");
  };
  const gone = (): Promise<unknown> => until(isFree, { what: "the key to go" });

  it("by replyTimeout", async () => {
    await paused(await stage.join({ client: { replyTimeout: 1_000 } }));
    await gone();
  });

  it("by a closed connection whose commands are not sent again", async () => {
    const party = await stage.join({
      url: proxy.url,
      redis: { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 },
    });
    const dropped = proxy.dropReply(runs("acquire"));
    await expect(party.locks.lock(name).lock({ wait: 1_000 })).rejects.toMatchObject({
      code: "LOCK_UNAVAILABLE",
    });
    await dropped;
    await gone();
  });
});

/** The near client's subscriber is acknowledged: it publishes to itself once it is. */
function subscribed(): Promise<unknown> {
  return until(async () => {
    const list = (await far.redis.pubsub("CHANNELS", `*${near.locks.id}`)) as string[];
    return list.length === 1;
  });
}
