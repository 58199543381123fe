// On a real Redis; in virtual time: test/world/directed/wanted.test.ts.

import { afterEach, expect, it } from "vitest";
import type { Lease } from "../../src/index.ts";
import { Onlooker } from "../support/onlooker.ts";
import { runs, Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

// `lease.wanted` of a client whose Redis, or whose messages, cannot be reached: it stays quiet, and
// tells later. That nothing rejects unhandled is checked behind each test.

/** A renewal comes each 0.5 s. */
const stage = new Stage({ near: { client: { leaseTime: 1_500, replyTimeout: 500 } } });
let lease: Lease | null = null;
afterEach(async () => {
  await lease?.unlock().catch(() => {});
  lease = null;
});

const aborted = (signal: AbortSignal): Promise<unknown> => until(() => signal.aborted, { what: "an abort" });
const digit = async (): Promise<string | undefined> => (await stage.far.redis.get(stage.lock.keys.lock))?.[1];

/** Somebody waits, and gets the lock when it is given up. */
async function giveWay(held: Lease): Promise<void> {
  const waiting = stage.far.locks.lock(stage.lock.name).withLock(() => {});
  await aborted(held.wanted);
  expect(held.wanted.reason).toMatchObject({ code: "LOCK_WANTED" });
  expect(held.held).toBe(true);
  await held.unlock();
  await waiting;
}

it("renewals report a waiter if SUBSCRIBE is never answered", async () => {
  const { near, proxy, lock } = stage;
  proxy.partition("subscribers");
  lease = await near.locks.lock(lock.name).lock();
  expect(lease.wanted.aborted).toBe(false);
  await giveWay(lease);
});

it("a lease without renewals is notified as soon as messages arrive", async () => {
  const { near, far, proxy, lock } = stage;
  proxy.partition("subscribers");
  lease = await near.locks.lock(lock.name).lock({ lease: 60_000 });
  proxy.record();
  expect(lease.wanted.aborted).toBe(false);
  // It gives up on the subscription, and asks all the same. Somebody waits only then.
  await until(() => proxy.commands.some(({ command }) => runs("renewStays")(command)));
  const waiting = far.locks.lock(lock.name).withLock(() => {});
  await lock.queued(1);
  expect([lease.wanted.aborted, await digit()]).toEqual([false, "0"]);
  proxy.thaw();
  await aborted(lease.wanted);
  await lease.unlock();
  await waiting;
});

it("a Redis that hangs at the first read does not abort the signal", async () => {
  const { near, proxy, lock } = stage;
  lease = await near.locks.lock(lock.name).lock({ lease: 60_000 });
  proxy.freeze();
  const { wanted } = lease;
  await until(() => near.redis.ping().then(() => false), { timeout: 1_500 }).catch(() => {});
  proxy.thaw();
  await until(async () => (await digit()) === "1");
  expect(wanted.aborted).toBe(false);
  await giveWay(lease);
});

it.each(["commands", "subscribers", "all"] as const)(
  "a lost connection does not abort the signal, and a later waiter does: %s",
  async (which) => {
    const { near, proxy, lock } = stage;
    lease = await near.locks.lock(lock.name).lock();
    const { wanted } = lease;
    await until(async () => (await digit()) === "1");
    proxy.cut(which);
    await until(() => near.redis.ping().catch(() => false));
    await stage.warm(near);
    expect(wanted.aborted).toBe(false);
    await giveWay(lease);
  },
);

it("a waiter that comes while messages are lost is reported when they arrive again", async () => {
  const { near, far, proxy, lock } = stage;
  lease = await near.locks.lock(lock.name).lock({ lease: 60_000 });
  const { wanted } = lease;
  await until(async () => (await digit()) === "1");
  proxy.refuse(true);
  proxy.cut("subscribers");
  const waiting = far.locks.lock(lock.name).withLock(() => {});
  await lock.queued(1);
  expect(wanted.aborted).toBe(false);
  proxy.refuse(false);
  await aborted(wanted);
  await lease.unlock();
  await waiting;
});

it("a hold whose messages were lost before the first read is checked in Redis", async () => {
  const { near, proxy, lock } = stage;
  await stage.warm(near);
  lease = await near.locks.lock(lock.name).lock({ lease: 60_000 });
  expect(await digit()).toBe("1");
  proxy.cut("subscribers");
  await stage.warm(near);
  proxy.record();
  expect(lease.wanted.aborted).toBe(false);
  await until(() => proxy.commands.some(({ command }) => runs("renewStays")(command)));
});

it("a client that closes during the request leaves nothing behind", async () => {
  const { near, proxy, lock, server } = stage;
  proxy.partition("subscribers");
  lease = await near.locks.lock(lock.name).lock();
  const { wanted } = lease;
  await near.locks.close({ grace: 0 });
  proxy.thaw();
  expect([wanted.aborted, lease.signal.aborted]).toEqual([false, true]);
  const onlooker = new Onlooker(stage.far.redis, lock.name);
  await until(async () => (await onlooker.holder()) === "");
  const pubsub = await until(async () => {
    const list = String(await stage.far.redis.call("CLIENT", "LIST", "TYPE", "pubsub"));
    return list.trim() === "" ? "none" : null;
  });
  expect([pubsub, server.url]).toEqual(["none", server.url]);
});
