import type { Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { socketOf } from "../support/carrier.ts";
import { countCommands } from "../support/command-count.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// On a busy machine a subscription may take longer than the 100 ms after which a client would try the
// lock once more, and a turn longer than the period of a re-check.
vi.mock("../../src/defaults.ts", async (all) => ({
  ...((await all()) as object),
  SUBSCRIBED_SOON: 20_000,
  RECHECKS: [
    { before: 8, period: 40_000 },
    { before: Number.POSITIVE_INFINITY, period: 40_000 },
  ],
}));

// Commands are counted by the server, so these tests have one of their own. Every lock client here
// stands for a process: it has its own two connections, its own queue entries and its own id.

const parties = new Parties();
let server: LocalServer;
let url: string;

beforeAll(async () => {
  server = await launchServer();
  url = server.url;
});
afterAll(async () => {
  await parties.close();
  await server.stop();
});

/**
 * Clients that have waited once, so that their subscriber is open and the scripts are known to the
 * server.
 */
async function warm(count: number): Promise<Party[]> {
  const all = await Promise.all(Array.from({ length: count }, () => parties.join({ url })));
  const name = freshName("warm-up");
  await Promise.all(all.map(({ locks }) => locks.lock(name).withLock(() => {})));
  const blocker = await parties.join({ url });
  const held = await blocker.locks.lock(name).lock({ wait: 0 });
  const waiting = all.map(({ locks }) => locks.lock(name).lock());
  await until(async () => (await blocker.locks.lock(name).inspect()).waiters?.length === count, {
    what: "all clients to queue",
  });
  await held.unlock();
  await Promise.all(waiting.map(async (lease) => (await lease).unlock()));
  return all;
}

const first = <T>(list: readonly T[]): T => {
  const [one] = list;
  if (one === undefined) throw new Error("empty list");
  return one;
};

/** A try, SUBSCRIBE, the probe of the new subscription, the place in the queue. */
const FIRST_WAIT = 4;

describe("the number of commands", () => {
  it("is one to acquire and one to release without contention", async () => {
    const { locks, redis } = first(await warm(1));
    const count = await countCommands(redis);
    for (let i = 0; i < 20; i++) await (await locks.lock(freshName()).lock()).unlock();
    expect(await count.waiting()).toBe(40);
  });

  it("is one write for the replies of one read when eight callers resume together", async () => {
    const { locks, redis } = first(await warm(1));
    const stream = socketOf(redis) as Required<Socket>;
    let reads = 0;
    const read = (): void => void reads++;
    stream.on("data", read);
    const write = vi.spyOn(stream, "_write");
    const writev = vi.spyOn(stream, "_writev");
    const count = await countCommands(redis);
    // They begin in one packet, so that the replies come in one.
    stream.cork();
    const callers = Array.from({ length: 8 }, async (_, i) => {
      for (let round = 0; round < 20; round++) await (await locks.lock(`${freshName()}${i}`).lock()).unlock();
    });
    stream.uncork();
    await Promise.all(callers);
    const writes = write.mock.calls.length + writev.mock.calls.length;
    stream.off("data", read);
    expect(await count.waiting()).toBe(320);
    // Those of the test itself are among them.
    expect(writes).toBeLessThanOrEqual(reads + 3);
  });

  it(`of a client's first wait is at most ${FIRST_WAIT}`, async () => {
    const [blocker] = await warm(1);
    const lock = blocker?.locks.lock(freshName());
    if (!blocker || !lock) throw new Error("no client");
    const held = await lock.lock();
    const { locks } = await parties.join({ url });
    const count = await countCommands(blocker.redis);
    const waiting = locks.lock(lock.name).lock();
    await until(async () => (await blocker.redis.zcard(`holdfast:{${lock.name}}:queue`)) === 1);
    await held.unlock();
    const lease = await waiting;
    expect((await count.waiting()) - 1).toBeLessThanOrEqual(FIRST_WAIT); // without the release
    await lease.unlock();
  });
});
