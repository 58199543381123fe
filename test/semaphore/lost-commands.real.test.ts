// On a real Redis; in virtual time: test/world/directed/semaphore.test.ts.

import type { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import type { Semaphore } from "../../src/index.ts";
import { countedLua } from "../../src/redis/lua.generated.ts";
import { onNodeRedis } from "../support/carrier.ts";
import { freshName } from "../support/fixture.ts";
import { nextConnection } from "../support/link.ts";
import { Stage, timed } from "../support/stage.ts";
import type { Match } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// Replies about permits are lost, and Redis is away while they are held and waited for. No permit
// is counted twice, none is lost.

/** Long enough for a cut, and short enough to see its end. */
const LEASE = 600;
const stage = new Stage();
const unavailable = { code: "LOCK_UNAVAILABLE" };

const runs = (...scripts: (keyof typeof countedLua)[]): Match => {
  const texts = scripts.flatMap((one) => [countedLua[one].sha, countedLua[one].lua]);
  return ([, text]) => texts.includes(`${text}`);
};
const acquires = runs("acquire", "firstAcquire");
/** It names an entry. */
const queues: Match = (command) => acquires(command) && /^[01]p /.test(command[15] ?? "");

/** Two permits as `near` and `far` see them; both have used them already. */
async function open(redis: object = {}): Promise<{ mine: Semaphore; theirs: Semaphore; redis: Redis }> {
  const name = freshName();
  const { url } = stage.proxy;
  const near = await stage.join({ url, redis, client: { leaseTime: LEASE } });
  near.locks.on("error", () => {}); // renewals fail while Redis is away
  const [mine, theirs] = [near, stage.far].map(({ locks }) => locks.semaphore(name, { permits: 2 })) as [
    Semaphore,
    Semaphore,
  ];
  await (await mine.acquire()).release();
  await (await theirs.acquire()).release();
  return { mine, theirs, redis: near.redis };
}
const waiting = (slots: Semaphore, count: number): Promise<unknown> =>
  until(async () => (await slots.inspect()).waiters.length === count);
const used = async (slots: Semaphore): Promise<number> => (await slots.inspect()).used;

describe("a lost reply", () => {
  it("of an acquire that ioredis sends again: its permits are counted once", async () => {
    const { mine, theirs } = await open();
    const dropped = stage.proxy.dropReply(acquires);
    const lease = await mine.acquire(2);
    await dropped;
    expect([lease.held, await used(theirs)]).toEqual([true, 2]);
    await lease.release();
    expect(await used(theirs)).toBe(0);
  });

  it("of an acquire that fails: the caller gets an error, and its permits come back", async () => {
    const { mine, theirs } = await open({ autoResendUnfulfilledCommands: false });
    const dropped = stage.proxy.dropReply(acquires);
    await expect(mine.acquire(2)).rejects.toMatchObject(unavailable);
    await dropped;
    await (await theirs.acquire(2, { wait: 10_000 })).release();
  });

  // With node-redis the second try fails as well, because there is no connection yet.
  it.skipIf(onNodeRedis)(
    "of an acquire that queues: the place is given up, and another one taken",
    async () => {
      const { mine, theirs } = await open({ autoResendUnfulfilledCommands: false });
      const held = await theirs.acquire(2);
      const dropped = stage.proxy.dropReply(queues);
      const calling = mine.acquire();
      await dropped;
      const [first] = (await theirs.inspect()).waiters;
      await until(async () => {
        const { waiters } = await theirs.inspect();
        return waiters.length === 1 && waiters[0]?.id !== first?.id;
      });
      await held.release();
      const lease = await calling;
      expect(await used(theirs)).toBe(1);
      await lease.release();
    },
  );

  it("of a release that ioredis sends again: it is no loss, and the next holder keeps its permits", async () => {
    const { mine, theirs } = await open();
    const lease = await mine.acquire(2);
    const next = theirs.acquire(2);
    await waiting(theirs, 1);
    const dropped = stage.proxy.dropReply(runs("release"));
    await lease.release();
    await dropped;
    expect([(await next).held, await used(theirs)]).toEqual([true, 2]);
    await (await next).release();
  });

  it("of a release that fails: unlock() rejects, the next caller has the permits, and the resent release takes none of them", async () => {
    const { mine, theirs, redis } = await open({
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
    });
    const lease = await mine.acquire(2);
    const next = theirs.acquire(2);
    await waiting(theirs, 1);
    const back = nextConnection(redis);
    const again = stage.proxy.dropReply(runs("release"));
    await expect(lease.release()).rejects.toMatchObject(unavailable);
    await again;
    await back();
    const theirLease = await next;
    expect(lease.held).toBe(false);
    expect(await mine.tryAcquire(1, 500)).toBeNull(); // behind what takes the lost release back
    expect([theirLease.held, await used(theirs)]).toEqual([true, 2]);
    await theirLease.release();
  });
});

describe("Redis away and back", () => {
  it("within the lease: the holder keeps its permits, the waiter its place and its turn", async () => {
    const { mine, theirs } = await open();
    const held = await mine.acquire(1, { lease: 5_000 });
    const other = await theirs.acquire();
    const next = mine.acquire();
    await waiting(theirs, 1);
    const last = theirs.acquire();
    await waiting(theirs, 2);
    const heard = (count: number): Promise<unknown> =>
      until(async () => (await stage.far.redis.pubsub("CHANNELS", "holdfast:client:*")).length === count);
    await heard(2);
    stage.proxy.refuse(true);
    stage.proxy.cut();
    await heard(1);
    expect(held.held).toBe(true);
    stage.proxy.refuse(false);
    await heard(2);
    await other.release();
    const lease = await next; // the first in the queue
    expect(await used(theirs)).toBe(2);
    await held.release();
    await (await last).release();
    await lease.release();
  });

  it("for longer than the lease: the holder knows before another caller has its permits, and a waiter queues again", async () => {
    const { mine, theirs } = await open();
    const held = await mine.acquire(2);
    const blocked = mine.acquire().catch((error: unknown) => error);
    await waiting(theirs, 1);
    const { signal } = held;
    const told = new Promise<number>((resolve) => {
      signal.addEventListener("abort", () => resolve(performance.now()));
    });
    const next = theirs.acquire(2, { wait: 10_000 }).then((lease) => ({ lease, at: performance.now() }));
    await waiting(theirs, 2);
    stage.proxy.refuse(true);
    stage.proxy.cut();
    const [knew, { lease, at }] = await Promise.all([told, next]);
    expect([signal.reason.reason, at > knew, lease.held]).toEqual(["expired", true, true]);
    stage.proxy.refuse(false);
    await lease.release();
    const outcome = await blocked;
    if (outcome instanceof Error) expect(outcome).toMatchObject(unavailable);
    else await (outcome as Awaited<ReturnType<Semaphore["acquire"]>>).release();
    const [again] = await timed(mine.acquire(2, { wait: 10_000 }));
    await again.release();
  });
});
