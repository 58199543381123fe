import { expect, it } from "vitest";
import type { UnfencedLease } from "../../src/index.ts";
import { commandCalls } from "../../tools/redis/command-calls.ts";
import { socketOf } from "../support/carrier.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { lockOf } from "../support/permit.ts";
import { until } from "../support/until.ts";

// What a process subscribes to while its callers wait. A server of its own, whose channels are counted.

const own = new OwnServer();
const LOCKS = 200;

it.for([
  ["lock", 1],
  ["fairLock", 1],
  ["redissonLock", LOCKS], // its protocol: a channel for each lock
] as const)(
  "a process whose callers wait for %s, 200 times, has subscriptions: %i",
  async ([kind, wanted]) => {
    const [holder, waiter] = await Promise.all([
      own.parties.join({ url: own.url }),
      own.parties.join({ url: own.url }),
    ]);
    const names = Array.from({ length: LOCKS }, () => freshName());
    const leases: UnfencedLease[] = [];
    // One after the other: a call that does not wait has 500 ms.
    for (const name of names) leases.push(await lockOf(holder.locks, kind, name).lock({ wait: 0 }));
    const waiting = names.map((name) => lockOf(waiter.locks, kind, name).lock());
    await until(async () => (await channels()).length >= wanted);
    if (kind !== "redissonLock")
      await until(async () => {
        const seen = await Promise.all(names.map((name) => holder.locks[kind](name).inspect()));
        return seen.every((one) => one?.waiters?.length === 1);
      });
    expect(await channels()).toHaveLength(wanted);
    await Promise.all(leases.map((lease) => lease.unlock()));
    await Promise.all((await Promise.all(waiting)).map((lease) => lease.unlock()));
  },
);

it.each(["lock", "fairLock"] as const)(
  "%s: the client subscribes with the first command of the first call that may wait, and never for calls that do not",
  async (kind) => {
    const { locks, redis } = await own.parties.join({ url: own.url });
    const lock = locks[kind](freshName());
    const before = await connections();
    for (let i = 0; i < 5; i++) await (await lock.tryLock())?.unlock();
    await lock.withLock({ wait: 0 }, () => lock.inspect());
    expect(await connections()).toBe(before);
    const asked = await subscribes();
    // Its answer is not read before that.
    const stream = socketOf(redis);
    stream?.pause();
    const taken = lock.lock();
    await until(async () => (await subscribes()) === asked + 1, { what: "it to subscribe" });
    stream?.resume();
    await (await taken).unlock();
    // Once: most locks are free.
    for (let i = 0; i < 5; i++) await locks[kind](freshName()).withLock(() => {});
    expect(await subscribes()).toBe(asked + 1);
    expect(await connections()).toBe(before + 1);
  },
);

it("without any right to subscribe, a call that may wait still takes a free lock, and one event says why others come late", async () => {
  await own.admin.call("ACL", "SETUSER", "deaf", "on", ">pw", "~*", "&*", "+@all", "-subscribe");
  const { locks } = await own.parties.join({ url: own.url, redis: { username: "deaf", password: "pw" } });
  const errors: unknown[] = [];
  locks.on("error", (error) => errors.push(error));
  const refused = await refusals();
  for (let i = 0; i < 3; i++) await locks.lock(freshName()).withLock(() => {});
  await until(async () => (await refusals()) > refused, { what: "SUBSCRIBE to be refused" });
  await locks.lock(freshName()).withLock(() => {});
  await until(() => errors.length > 0);
  expect(errors).toMatchObject([{ code: "NO_MESSAGES", message: expect.stringContaining("NOPERM") }]);
});

const connections = async () => Number(/connected_clients:(\d+)/.exec(await own.admin.info("clients"))?.[1]);
/** How many SUBSCRIBE commands the server has run. */
const subscribes = async () => commandCalls(await own.admin.info("commandstats")).get("subscribe") ?? 0;
const refusals = async () => ((await own.admin.call("ACL", "LOG")) as unknown[]).length;
const channels = async () => (await own.admin.call("PUBSUB", "CHANNELS")) as string[];
