import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { staysQuiet } from "../support/quiet.ts";
import { until } from "../support/until.ts";

// The server is killed and restarted empty, or forgets the scripts. A server of its own for these tests.

const parties = new Parties();
staysQuiet();
let server: LocalServer;
let a: Party;
let b: Party;
let name: string;

const join = (client = {}): Promise<Party> => parties.join({ url: server.url, client });
const waiters = async (): Promise<number> => (await a.locks.lock(name).inspect()).waiters?.length ?? 0;
const queued = (count: number): Promise<unknown> =>
  until(async () => (await waiters()) === count, { what: `${count} queued` });

beforeAll(async () => {
  server = await launchServer();
});
beforeEach(async () => {
  [a, b, name] = [await join(), await join(), freshName()];
});
afterAll(async () => {
  await parties.close();
  await server.stop();
});

describe("SCRIPT FLUSH", () => {
  it("at any time goes unnoticed", async () => {
    let flushing = true;
    const flusher = (async () => {
      while (flushing) await a.redis.script("FLUSH");
    })();
    let count = 0;
    const work = [a, b, await join()].map(async ({ locks }) => {
      for (let i = 0; i < 30; i++) await locks.lock(name).withLock(() => count++);
    });
    await Promise.all(work);
    flushing = false;
    await flusher;
    expect(count).toBe(90);
  });
});

describe("the server is killed and restarted without data", () => {
  it("the holder is notified, the waiters get the lock, and the tokens keep growing", async () => {
    const c = await join({ leaseTime: 1_500 });
    const held = await c.locks.lock(name).lock();
    const { signal, token } = held;
    const waiting = b.locks.lock(name).lock();
    await queued(1);
    await server.kill();
    await server.restart();
    const lease = await waiting;
    expect(lease.token).toBeGreaterThan(token);
    await until(() => signal.aborted, { what: "the holder's signal" });
    expect(held.held).toBe(false);
    await expect(held.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    await lease.unlock();
  });

  it("while it is down: the deadline passes locally, calls fail with a typed error, and none hangs", async () => {
    const c = await join({ leaseTime: 1_000, replyTimeout: 600 });
    const held = await c.locks.lock(name).lock();
    const errors: Error[] = [];
    for (const { locks } of [a, b, c]) locks.on("error", (error) => errors.push(error));
    await server.kill();
    const start = performance.now();
    const tries = [
      c.locks.lock(freshName()).tryLock(),
      c.locks.lock(freshName()).lock(),
      c.locks.lock(freshName()).withLock({ wait: 200 }, () => {}),
      c.locks.lock(name).isLocked(),
    ];
    for (const outcome of await Promise.allSettled(tries)) {
      expect(outcome).toMatchObject({ status: "rejected", reason: { code: "LOCK_UNAVAILABLE" } });
    }
    expect(performance.now() - start).toBeLessThan(5_000);
    await until(() => held.signal.aborted, { what: "the holder's signal" });
    expect(held.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    await server.restart();
    await until(
      () =>
        a.locks
          .lock(name)
          .tryLock(1_000)
          .catch(() => null),
      { what: "the locks to work again" },
    );
  });
});
