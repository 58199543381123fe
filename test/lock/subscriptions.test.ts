import { expect, it } from "vitest";
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
    const leases = await Promise.all(names.map((name) => lockOf(holder.locks, kind, name).lock()));
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

const channels = async () => (await own.admin.call("PUBSUB", "CHANNELS")) as string[];
