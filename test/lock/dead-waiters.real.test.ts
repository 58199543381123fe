// On a real Redis; in virtual time: test/world/directed/crowds.test.ts.

import { expect, it } from "vitest";
import { commandCalls } from "../../tools/redis/command-calls.ts";
import { Actor } from "../support/actor.ts";
import { Stage, timed } from "../support/stage.ts";
import { until } from "../support/until.ts";

// A process dies that had many places in a queue. The next release finds the first place that lives.

const CROWD = 600;
const stage = new Stage();

/** How often Redis was asked for the subscribers of a channel. */
const asked = async (): Promise<number> =>
  [...commandCalls(await stage.far.redis.info("commandstats"))]
    .filter(([name]) => name.startsWith("pubsub"))
    .reduce((sum, [, calls]) => sum + calls, 0);

async function crowdThatDied(name: string): Promise<void> {
  const actor = await Actor.start({ url: stage.server.url });
  const calls = Array.from({ length: CROWD }, () => actor.call("acquire", "fairLock", name, 60_000));
  const over = Promise.allSettled(calls);
  await stage.lock.queued(CROWD);
  actor.kill();
  await over;
  const [channel = ""] = (await stage.far.redis.pubsub("CHANNELS", `*:${actor.pid}:*`)) as string[];
  await until(async () => Number((await stage.far.redis.pubsub("NUMSUB", channel))[1] ?? 0) === 0);
}

it("a crashed waiter costs one check of its channel, and the waiter after it is granted the lock at once", async ({
  annotate,
}) => {
  const { near, far, lock } = stage;
  const held = await far.locks.fairLock(lock.name).lock();
  await crowdThatDied(lock.name);
  const waiting = near.locks.fairLock(lock.name).lock();
  await lock.queued(CROWD + 1);
  const before = await asked();
  const [lease, waited] = await timed(held.unlock().then(() => waiting));
  const looks = (await asked()) - before;
  await annotate(`had after ${waited} ms, ${looks} looks`);
  expect(looks).toBeLessThan(10);
  expect(waited).toBeLessThan(350);
  await lease.unlock();
  await lock.gone();
}, 60_000);

it("a crashed waiter leaves nothing if no caller waits after it", async () => {
  const { far, lock } = stage;
  const held = await far.locks.fairLock(lock.name).lock();
  await crowdThatDied(lock.name);
  const before = await asked();
  await held.unlock();
  expect((await asked()) - before).toBeLessThan(10);
  await lock.gone();
}, 60_000);

it("a crashed waiter between two live ones delays neither, and takes no turn", async () => {
  const { near, far, lock } = stage;
  const third = await stage.join();
  const held = await far.locks.fairLock(lock.name).lock();
  const first = near.locks.fairLock(lock.name).lock();
  await lock.queued(1);
  const order: string[] = [];
  const dying = stage.lock;
  const actor = await Actor.start({ url: stage.server.url });
  const calls = Array.from({ length: CROWD }, () => actor.call("acquire", "fairLock", lock.name, 60_000));
  const over = Promise.allSettled(calls);
  await dying.queued(CROWD + 1);
  const last = third.locks.fairLock(lock.name).lock();
  await lock.queued(CROWD + 2);
  actor.kill();
  await over;
  const [channel = ""] = (await far.redis.pubsub("CHANNELS", `*:${actor.pid}:*`)) as string[];
  await until(async () => Number((await far.redis.pubsub("NUMSUB", channel))[1] ?? 0) === 0);
  void first.then(() => order.push("first"));
  void last.then(() => order.push("last"));
  await held.unlock();
  const lease = await first;
  expect(order).toEqual(["first"]);
  const [next, waited] = await timed(lease.unlock().then(() => last));
  expect(waited).toBeLessThan(350);
  expect(next.token).toBeGreaterThan(lease.token);
  await next.unlock();
  await lock.gone();
}, 60_000);
