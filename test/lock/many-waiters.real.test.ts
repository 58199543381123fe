// On a real Redis; in virtual time: test/world/directed/{crowds,servers,listeners,close}.test.ts.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { countCommands } from "../support/command-count.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { lockOf } from "../support/permit.ts";
import { staysQuiet } from "../support/quiet.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// Many waiters, lost subscriptions, commands given up: what waiting costs, and whose place is kept.

const parties = new Parties();
staysQuiet();
let server: LocalServer;
let a: Party;
let b: Party;
let name: string;

const waiters = async (): Promise<number> => (await a.locks.lock(name).inspect()).waiters?.length ?? 0;

beforeAll(async () => {
  server = await launchServer();
});
beforeEach(async () => {
  [a, b, name] = [
    await parties.join({ url: server.url }),
    await parties.join({ url: server.url }),
    freshName(),
  ];
});
afterAll(async () => {
  await parties.close();
  await server.stop();
});

describe("300 fair waiters of one client", () => {
  const start = async (wait: number): Promise<Promise<unknown>[]> => {
    await b.locks.fairLock(freshName()).lock();
    const waiting = Array.from({ length: 300 }, async () =>
      (await b.locks.fairLock(name).tryLock(wait))?.unlock(),
    );
    await until(async () => (await waiters()) === 300, { what: "300 places" });
    return waiting;
  };

  it("subscribe once, re-check together once a period, and once after a reconnect", async () => {
    const held = await a.locks.lock(name).lock();
    const all = await countCommands(a.redis);
    const waiting = await start(60_000);
    expect((await all.since()).subscribe).toBeLessThanOrEqual(2);
    const parked = await countCommands(a.redis);
    const began = performance.now();
    let first = 0;
    const deadlineMoves = async (): Promise<boolean> => {
      const [, deadline = "0"] = await a.redis.zrange(`holdfast:{${name}}:clients`, 0, "0", "WITHSCORES");
      first ||= Number(deadline);
      return Number(deadline) > first;
    };
    await until(deadlineMoves, { what: "a re-check" });
    await a.redis.call("CLIENT", "KILL", "TYPE", "pubsub");
    await until(async () => ((await parked.since()).subscribe ?? 0) >= 1, {
      what: "the subscriber to come back",
    });
    await until(async () => (await parked.scripts()) >= 3, { what: "the re-check after it" });
    // inspect() apart, a handful: a place that looked for itself would make 300 of them.
    expect(await parked.scripts()).toBeLessThanOrEqual(20 + (performance.now() - began) / 1_000);
    await held.unlock();
    await Promise.all(waiting);
  }, 30_000);

  it("a crashed holder costs its lease and one re-check of the first place", async ({ annotate }) => {
    await a.locks.lock(name).tryLock(0, 2_500); // never unlocked
    const began = performance.now();
    const waiting = await start(60_000);
    await Promise.race(waiting);
    const waited = performance.now() - began;
    await annotate(`the first one after ${Math.round(waited)} ms`);
    expect(waited).toBeLessThan(3 * (2_500 + 1_875));
    await Promise.all(waiting);
  }, 30_000);
});

describe("fair places of one client", () => {
  it("that lost their entries all re-check at once, one after the other", async () => {
    const held = await a.locks.lock(name).lock();
    const waiting = Array.from({ length: 8 }, async () => (await b.locks.fairLock(name).lock()).unlock());
    await until(async () => (await waiters()) === 8, { what: "8 places" });
    const began = performance.now();
    await a.redis.flushall();
    await Promise.all(waiting);
    expect(performance.now() - began).toBeLessThan(4_000); // one re-check for each would take 12 s
    await held.unlock().catch(() => {});
  });

  it("do not report a holder if Redis cannot be reached", async () => {
    const proxy = await TcpProxy.start(server);
    const far = await parties.join({ url: proxy.url });
    const held = await a.locks.lock(name).lock();
    const waiting = Array.from({ length: 3 }, () => far.locks.fairLock(name).tryLock(3_000));
    await until(async () => (await waiters()) === 3, { what: "3 places" });
    await far.redis.ping(); // it has read that it waits
    proxy.freeze();
    for (const outcome of await Promise.allSettled(waiting)) {
      expect(outcome).toMatchObject({ status: "rejected", reason: { code: "LOCK_UNAVAILABLE" } });
    }
    proxy.thaw();
    await held.unlock();
    await far.locks.close({ grace: 0 });
    await proxy.stop();
  });
});

describe("a listener that acts during an event", () => {
  it("does not cost the other callers their wait", async () => {
    const party = await parties.join({ url: server.url, client: { replyTimeout: 600 } });
    await (await a.locks.lock(name).lock()).unlock();
    const held = await a.locks.lock(name).lock();
    await party.locks.lock(name).tryLock(20); // opens the subscriber
    const controller = new AbortController();
    party.locks.once("wait", () => controller.abort(new Error("enough")));
    const lock = party.locks.lock(name);
    const calls = [lock.lock(), lock.lock({ signal: controller.signal }), lock.lock(), lock.lock()];
    const outcomes = Promise.allSettled(calls.map((call) => call.then((lease) => lease.unlock())));
    await expect(calls[1]).rejects.toThrow("enough");
    const began = performance.now();
    // A call that had asked for it would give up by then.
    await until(() => performance.now() > began + 2 * 600, { what: "the time of a command to be over" });
    await held.unlock();
    expect((await outcomes).map(({ status }) => status)).toEqual([
      "fulfilled",
      "rejected",
      "fulfilled",
      "fulfilled",
    ]);
  });
});

describe("a slow way to Redis", () => {
  it("does not cost a caller its answer if it comes while another one's try is under way", async () => {
    const proxy = await TcpProxy.start(server);
    const far = await parties.join({ url: proxy.url });
    await (await far.locks.lock(name).lock()).unlock(); // the scripts are known
    const held = await a.locks.lock(name).lock();
    // two tries take more than the 500 ms that one caller would have
    proxy.delay(270, { direction: "to client" });
    const early = far.locks.lock(name).tryLock();
    const late = far.locks.lock(name).tryLock();
    expect(await Promise.all([early, late])).toEqual([null, null]);
    proxy.delay(0);
    await held.unlock();
    await far.locks.close({ grace: 0 });
    await proxy.stop();
  });
});

describe("close()", () => {
  it("waits for the answer to a release that is under way", async () => {
    const party = await parties.join({ url: server.url });
    const lease = await party.locks.lock(name).lock();
    await a.redis.script("FLUSH"); // the release takes two commands now
    const unlocked = lease.unlock();
    await party.locks.close();
    await party.redis.quit();
    await unlocked;
    expect(await a.redis.exists(`holdfast:{${name}}`)).toBe(0);
  });
});

describe("one lock among many", () => {
  it.each(["lock", "redissonLock"] as const)(
    "%s: a key of another type does not cost the others their renewal",
    async (kind) => {
      const party = await parties.join({ url: server.url, client: { leaseTime: 600 } });
      const leases = await Promise.all(
        ["x", "y", "z"].map((part) => lockOf(party.locks, kind, `${name}:${part}`).lock()),
      );
      const key = kind === "lock" ? `holdfast:{${name}:y}` : `${name}:y`;
      await a.redis.set(key, "a string");
      await until(() => leases[1]?.signal.aborted, { what: "the poisoned one to be lost" });
      const renewed = new Set<string>();
      party.locks.on("renew", (event) => renewed.add(event.name));
      await until(() => renewed.size === 2, { what: "the others to be renewed" });
      expect(leases.map((lease) => lease.held)).toEqual([true, false, true]);
      await a.redis.del(key);
      await Promise.allSettled(leases.map((lease) => lease.unlock()));
    },
  );
});
