// On a real Redis; in virtual time: test/world/directed/{connection-failures,half-open}.test.ts.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { staysQuiet } from "../support/quiet.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// The message of a grant does not reach its waiter: the subscriber connection is cut, or hears nothing.

const parties = new Parties();
staysQuiet();
let server: LocalServer;
let a: Party;
let name: string;

const join = (client = {}): Promise<Party> => parties.join({ url: server.url, client });
const waiters = async (): Promise<number> => (await a.locks.lock(name).inspect()).waiters?.length ?? 0;
const queued = (count: number): Promise<unknown> =>
  until(async () => (await waiters()) === count, { what: `${count} queued` });

/** The ids of the connections that have subscribed to a channel. */
const subscribers = async (): Promise<string[]> => {
  const list = String(await a.redis.call("CLIENT", "LIST", "TYPE", "pubsub"));
  return [...list.matchAll(/^id=(\d+) .* sub=[1-9]/gm)].map(([, id]) => String(id));
};

beforeAll(async () => {
  server = await launchServer();
});
beforeEach(async () => {
  [a, name] = [await join(), freshName()];
});
afterAll(async () => {
  await parties.close();
  await server.stop();
});

describe("subscriber connections are cut", () => {
  it("while 20 waiters are parked: each gets its turn", async () => {
    const held = await a.locks.lock(name).lock();
    const all = await Promise.all(Array.from({ length: 20 }, () => join()));
    const waiting = all.map(async ({ locks }) => (await locks.lock(name).lock()).unlock());
    await queued(20);
    await a.redis.call("CLIENT", "KILL", "TYPE", "pubsub");
    await held.unlock();
    await Promise.all(waiting);
    expect(await a.locks.lock(name).isLocked()).toBe(false);
  });

  it("at the moment of a grant: a re-check finds it, within less than the grant window", async () => {
    const proxy = await TcpProxy.start(server);
    const far = await parties.join({ url: proxy.url });
    const held = await a.locks.lock(name).lock();
    const waiting = far.locks.lock(name).lock();
    await queued(1);
    // Half-open first: the server counts a receiver, but the message does not reach it; then the
    // connection breaks.
    proxy.freeze("subscribers");
    await held.unlock();
    const { holder } = await a.locks.lock(name).inspect();
    proxy.cut("subscribers");
    const lease = await waiting;
    // The hold that was granted: behind the window it would be another one.
    expect((await a.locks.lock(name).inspect()).holder?.id).toBe(holder?.id);
    expect(holder?.id).toContain(far.locks.id);
    expect(lease.token).toBeGreaterThan(held.token);
    expect(lease.held).toBe(true);
    await lease.unlock();
    await far.locks.close();
    await proxy.stop();
  });

  it("and a grant that is read after a re-check found it changes nothing", async () => {
    const proxy = await TcpProxy.start(server);
    const far = await parties.join({ url: proxy.url, client: { leaseTime: 4_000 } });
    const held = await a.locks.lock(name).lock();
    const waiting = far.locks.lock(name).lock();
    await queued(1);
    proxy.freeze("subscribers");
    await held.unlock();
    const lease = await waiting; // by its re-check
    const heard = new Promise<void>((resolve) => far.locks.once("renew", () => resolve()));
    proxy.thaw(); // the message arrives now
    await heard; // a claim, or the next renewal: later than the message
    expect((await a.locks.lock(name).inspect()).token).toBe(lease.token);
    expect(lease.held).toBe(true);
    await lease.unlock();
    await far.locks.close();
    await proxy.stop();
  }, 30_000);

  it("and one that receives nothing, but counts as a receiver, is replaced", async () => {
    const proxy = await TcpProxy.start(server);
    const far = await parties.join({ url: proxy.url });
    const lock = far.locks.lock(name);
    // Somebody waits all the time: for nobody it would not come back before the next wait.
    const [theirs, elsewhere] = [a.locks.lock(freshName()), new AbortController()];
    const kept = await theirs.lock();
    const patient = far.locks.lock(theirs.name).lock({ signal: elsewhere.signal });
    const held = await a.locks.lock(name).lock();
    const first = lock.lock();
    await queued(1);
    proxy.freeze("subscribers");
    const before = await subscribers();
    await held.unlock();
    await (await first).unlock(); // by its re-check, "already mine": the self-test begins
    await until(async () => (await subscribers()).some((id) => !before.includes(id)), {
      what: "a new subscriber",
    });
    // The new one hears grants: no re-check is needed.
    const again = await a.locks.lock(name).lock();
    const second = lock.lock();
    await queued(1);
    const start = performance.now();
    await again.unlock();
    await (await second).unlock();
    expect(performance.now() - start).toBeLessThan(350); // a re-check would be 1.1 s away at the least
    elsewhere.abort("enough");
    await expect(patient).rejects.toBe("enough");
    await kept.unlock();
    await far.locks.close();
    await proxy.stop();
  }, 30_000);
});
