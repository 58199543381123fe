// On a real Redis; in virtual time: test/world/directed/cut-connections.test.ts.

import { describe, expect, it } from "vitest";
import type { Lease } from "../../src/index.ts";
import { runs, Stage, timed, timedAwake } from "../support/stage.ts";
import { type Match, named, type TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// The connections of a waiting client are cut at each step of its way: from the first try to the
// claim of what it was granted. It gets the lock, once, and leaves nothing behind.

const stage = new Stage({ near: { client: { localHandoffs: 0 } } });

type Cut = (proxy: TcpProxy) => Promise<unknown>;
const command =
  (match: Match): Cut =>
  (proxy) =>
    proxy.dropCommand(match);
const reply =
  (match: Match): Cut =>
  (proxy) =>
    proxy.dropReply(match);

const onTheWay: [string, Cut][] = [
  ["with the first try", command(runs("acquire", "try"))],
  ["before SUBSCRIBE", command(named("subscribe"))],
  ["before SUBSCRIBE is acknowledged", reply(named("subscribe"))],
  ["with the message by which the subscriber tests itself", command(runs("probe"))],
  ["between SUBSCRIBE and the place in the queue", command(runs("acquire", "queue"))],
  ["with a re-check", command(runs("acquire", "again"))],
];

describe("a connection is cut", () => {
  it.each(onTheWay)("%s: the caller gets a place, and then the lock", async (_, cut) => {
    const { near, far, lock, proxy } = stage;
    const held = await far.locks.lock(lock.name).lock();
    const happened = cut(proxy);
    const waiting = near.locks.lock(lock.name).lock();
    await happened;
    await lock.queued(1);
    await held.unlock();
    const lease = await waiting;
    expect([lease.held, await lock.holder()]).toEqual([true, expect.stringContaining(near.locks.id)]);
    await lease.unlock();
    await lock.gone();
  });

  it.each(["all", "subscribers", "commands"] as const)(
    "while the caller is parked (%s): it keeps its place, and receives the grant after the reconnect",
    async (which) => {
      const { lock, proxy } = stage;
      const { held, waiting } = await parked();
      const [before, patience] = [await lock.waiters(), await lock.patience()];
      proxy.cut(which);
      const [, away] = await timedAwake(
        until(async () => (await lock.patience()) !== patience, { what: "a re-check" }),
      );
      expect(away).toBeLessThan(1_000); // at once after the reconnect, not at the next re-check
      expect(await lock.waiters()).toEqual(before);
      await held.unlock();
      const [lease, waited] = await timedAwake(waiting);
      expect(waited).toBeLessThan(1_000); // by message
      await lease.unlock();
      await lock.gone();
    },
  );

  it("while the grant is under way: the re-check after the reconnect finds it", async ({ annotate }) => {
    const { lock, proxy } = stage;
    const { held, waiting } = await parked();
    proxy.freeze("subscribers"); // the server counts a receiver
    await held.unlock();
    proxy.cut("all");
    const [lease, waited] = await timed(waiting);
    await annotate(`the lock after ${waited} ms`);
    expect(waited).toBeLessThan(1_000); // the next re-check could be 1.9 s away, and the window is 3 s
    expect(lease.token).toBeGreaterThan(held.token);
    await lease.unlock();
    await lock.gone();
  });

  it("while the grant is under way, and stays away for longer than the window: the next caller has the lock", async ({
    annotate,
  }) => {
    const { near, lock, proxy } = stage;
    const { held, waiting } = await parked();
    const next = (await stage.join()).locks.lock(lock.name).lock();
    await lock.queued(2);
    proxy.freeze("subscribers");
    await held.unlock();
    proxy.refuse(true);
    proxy.cut("all");
    const [lease, waited] = await timed(next);
    await annotate(`the next one after ${waited} ms`);
    expect(waited).toBeLessThan(10_000); // a window and a re-check, 4.9 s; the whole lease would be 30 s
    proxy.refuse(false);
    await lock.queued(1); // its turn was lost: it has a new place
    expect(lease.held).toBe(true);
    await lease.unlock();
    const last = await waiting;
    expect([last.token > lease.token, await lock.holder()]).toEqual([
      true,
      expect.stringContaining(near.locks.id),
    ]);
    await last.unlock();
    await lock.gone();
  });

  it.each([
    ["before", command],
    ["after", reply],
  ])("%s Redis has executed the claim: the caller gets the lease that it asked for", async (_, cut) => {
    const { far, lock, proxy } = stage;
    const { held, waiting } = await parked({ lease: 20_000 });
    const happened = cut(runs("renew"))(proxy);
    await held.unlock();
    const [lease, waited] = await timed(waiting);
    await happened;
    expect(waited).toBeLessThan(1_000); // the window was not waited for
    expect(lease.remaining).toBeGreaterThan(15_000);
    expect(await lock.left()).toBeGreaterThan(15_000);
    expect(await far.locks.lock(lock.name).tryLock()).toBeNull();
    await lease.unlock();
    await lock.gone();
  });
});

/** A client behind the proxy waits for what somebody else holds. */
async function parked(options: { lease?: number } = {}): Promise<{ held: Lease; waiting: Promise<Lease> }> {
  const { near, far, lock } = stage;
  const held = await far.locks.lock(lock.name).lock();
  const waiting = near.locks.lock(lock.name).lock(options);
  await lock.queued(1);
  return { held, waiting };
}
