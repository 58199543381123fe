import type { Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Lease } from "../../src/index.ts";
import { handoffLua } from "../../src/redis/lua.generated.ts";
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

  it.each([2, 8, 32])(
    "for %i waiting clients with watchdog leases is two for each acquisition",
    async (clients) => {
      const all = await warm(clients);
      const { redis } = first(all);
      // A recall may arrive just after the release of its hold, which is then withdrawn in vain: how
      // often depends on the machine. So those are counted apart.
      await redis.call("SCRIPT", "LOAD", handoffLua.leave.lua);
      const monitor = await redis.duplicate().monitor();
      let withdrawn = 0;
      monitor.on("monitor", (_at: string, [, sha]: string[]) => {
        if (sha === handoffLua.leave.sha) withdrawn++;
      });
      const count = await countCommands(redis);
      const name = freshName();
      const acquisitions = 10 * clients;
      await Promise.all(
        all.map(async ({ locks }) => {
          for (let i = 0; i < 10; i++) await (await locks.lock(name).lock()).unlock();
        }),
      );
      const sent = await count.waiting();
      // What the monitor read by then includes all that was counted, or the sum below is too large.
      await until(() => sent - withdrawn <= 2 * acquisitions, { what: "two commands each" });
      expect(withdrawn).toBeLessThanOrEqual(acquisitions);
      monitor.disconnect();
    },
  );

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

  it("for a hundred callers of a fair lock who come at once, before any subscription, is two each", async () => {
    const { locks, redis } = await parties.join({ url });
    const count = await countCommands(redis);
    const lock = locks.fairLock(freshName());
    await Promise.all(Array.from({ length: 100 }, () => lock.withLock(() => {})));
    // And the first one's try, the self-test of the new subscription, scripts that the server did not know.
    expect(await count.scripts()).toBeLessThanOrEqual(2.2 * 100);
  });

  it("of an explicit lease that outlives the grant window is one more, for the claim", async () => {
    const all = await warm(8);
    const { locks, redis } = await parties.join({ url });
    const name = freshName();
    const held = await locks.lock(name).lock({ wait: 0 });
    await held.extend(30_000); // the server knows the renewal script from now on
    const count = await countCommands(redis);
    const waiting = all.map((party) => party.locks.lock(name).tryLock(10_000, 30_000));
    await until(async () => (await redis.zcard(`holdfast:{${name}}:queue`)) === 8);
    await held.unlock();
    for (const lease of await Promise.all(waiting.map((one) => one.then(unlocked))))
      expect(lease).toBeGreaterThan(20_000);
    // 8 acquires, 1 release of the blocker, then a claim and a release for each.
    expect(await count.waiting()).toBe(8 + 1 + 16);
  });

  it("for a thousand waiters of one process is one for four acquisitions", async () => {
    const { locks, redis } = first(await warm(1));
    const lock = locks.lock(freshName());
    const held = await lock.lock();
    const waiting = Array.from({ length: 1_000 }, () => lock.lock().then(unlocked));
    const count = await countCommands(redis);
    await held.unlock();
    await Promise.all(waiting);
    expect(await count.waiting()).toBeLessThanOrEqual(250);
  });

  it("of borrowing and re-entering is zero", async () => {
    const { locks, redis } = first(await warm(1));
    const lock = locks.lock(freshName());
    await lock.withLock(async () => {
      const count = await countCommands(redis);
      await lock.withLock(() => lock.withLock(() => {}));
      await (await lock.lock()).unlock();
      await (await lock.tryLock(100, 1_000))?.unlock();
      expect(await count.waiting()).toBe(0);
    });
  });

  it("to renew a thousand leases is a dozen a period", async () => {
    const { locks, redis } = await parties.join({ url, client: { leaseTime: 6_000 } });
    const leases: Lease[] = [];
    // Taken over a stretch of time, as in life: renewals must be brought together.
    for (let i = 0; i < 10; i++) {
      leases.push(...(await Promise.all(Array.from({ length: 100 }, () => locks.lock(freshName()).lock()))));
    }
    let renewals = 0;
    locks.on("renew", () => renewals++);
    const count = await countCommands(redis);
    await until(() => renewals >= 2_000, { what: "two renewals of every lease" });
    const periods = renewals / 1_000;
    expect((await count.waiting()) / periods).toBeLessThanOrEqual(12);
    expect(leases.every((lease) => lease.held)).toBe(true);
    await Promise.all(leases.map((lease) => lease.unlock()));
  });
});

async function unlocked(lease: Lease | null): Promise<number> {
  const left = lease?.remaining ?? 0;
  await lease?.unlock();
  return left;
}
