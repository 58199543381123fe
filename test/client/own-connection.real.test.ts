// On a real Redis; in virtual time: test/world/directed/own-connection.test.ts.

import { describe, expect, it } from "vitest";
import { freshName, type Party } from "../support/fixture.ts";
import { Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

// `connection: "own"`: nobody but the client can replace its connection.

const stage = new Stage();

const join = (replyTimeout: number): Promise<Party> =>
  stage.join({ url: stage.proxy.url, client: { connection: "own", replyTimeout } });

const isServed = async ({ locks }: Party): Promise<boolean> => {
  const lease = await locks
    .lock(freshName())
    .tryLock()
    .catch(() => null);
  await lease?.unlock();
  return lease !== null;
};

/** How many connections commands came on since `record()`. */
const connections = (): number => new Set(stage.proxy.commands.map(({ connection }) => connection)).size;

describe("a connection that the client opened", () => {
  it("keeps its lease and its place in the queue when it is replaced", async () => {
    const { far, lock, proxy } = stage;
    const party = await join(500);
    party.locks.on("error", () => {});
    await stage.warm(party);
    const lease = await party.locks.lock(freshName()).lock();
    const held = await far.locks.lock(lock.name).lock();
    const waiting = party.locks.lock(lock.name).lock();
    await lock.queued(1);
    await lock.lookedAt(); // The next re-check is more than 1 s away; unanswered, it would end the wait.
    proxy.freeze("commands");
    await until(() => isServed(party), { what: "an acquisition", timeout: 15_000 });
    expect(lease.held).toBe(true);
    await held.unlock();
    const next = await waiting;
    expect([next.held, lease.held]).toEqual([true, true]);
    await Promise.all([next.unlock(), lease.unlock()]);
  });

  it("to a suspended server is replaced at growing intervals", async ({ annotate }) => {
    const { proxy, server } = stage;
    const party = await join(250);
    expect(await isServed(party)).toBe(true);
    proxy.record();
    server.suspend();
    const end = performance.now() + 5_000;
    while (performance.now() < end) await isServed(party); // 250 ms each, or more
    const made = connections() - 1;
    server.resume();
    await until(() => isServed(party), { what: "an acquisition", timeout: 15_000 });
    await annotate(`${made} connections in 5 s`);
    expect(made).toBeLessThanOrEqual(6); // after 250, 500, 1 000, 2 000 ms; one every 250 ms would be 20
  });

  it("to a slow server is kept, once it is known to be slow", async ({ annotate }) => {
    const { proxy } = stage;
    const party = await join(300);
    expect(await isServed(party)).toBe(true);
    proxy.record();
    proxy.delay(500, { direction: "to client", which: "commands" });
    const end = performance.now() + 5_000;
    while (performance.now() < end) await isServed(party);
    await annotate(`${connections() - 1} connections in 5 s`);
    expect(connections() - 1).toBeLessThanOrEqual(3);
    proxy.delay(0);
    await until(() => isServed(party), { what: "an acquisition", timeout: 15_000 });
  });
});
