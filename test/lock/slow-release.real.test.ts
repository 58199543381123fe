// On a real Redis; in virtual time: test/world/directed/{late-answers,connection-failures}.test.ts.

import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { LockLostError } from "../../src/index.ts";
import type { LocalServer } from "../../tools/redis/index.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { trackUnhandled } from "../support/leaks.ts";
import { lockOf } from "../support/permit.ts";
import { QuorumStage } from "../support/quorum-stage.ts";
import { launchAll } from "../support/servers/launch-all.ts";
import { Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

// A body ended while its lock was surely held, and the release takes long: Redis stands still, or
// the way to it is slow. Nothing was lost: the work was protected to its end. (`replyTimeout` is
// 5 s.)

const LEASE = 2_500;
const STALLS = [1_000, 2_000, 2_600, 3_200, 4_000, 4_600, 6_000, 10_000];
const KINDS = ["lock", "fairLock", "redissonLock", "redissonFencedLock", "spinLock"] as const;

/** What its bodies were told at their end, and what the client has told of losses. */
class Watched {
  readonly lost: LockLostError[] = [];
  readonly party: Party;

  constructor(party: Party) {
    this.party = party;
    party.locks.on("lost", ({ error }) => this.lost.push(error));
    // What is not confirmed within the reply timeout is told there.
    party.locks.on("error", () => {});
  }
}

describe("a body that ended in time succeeds although Redis is suspended at its end", () => {
  const parties = new Parties();
  const quiet = trackUnhandled();
  let servers: LocalServer[];

  beforeAll(async () => {
    servers = await launchAll(STALLS.length, {});
  });
  afterEach(() => quiet.assertNone());
  afterAll(async () => {
    quiet.stop();
    for (const server of servers) if (server.state === "suspended") server.resume();
    await parties.close();
    await Promise.all(servers.map((server) => server.stop()));
  });

  /**
   * Every way to end a hold, on one server: all bodies end at the same moment, behind which Redis
   * stands still.
   */
  async function outcomes(server: LocalServer, stall: number): Promise<Record<string, unknown>> {
    const join = (localHandoffs: number) =>
      parties.join({ url: server.url, client: { leaseTime: LEASE, localHandoffs } });
    const { party: near, lost } = new Watched(await join(0));
    const far = await join(16);
    far.locks.on("error", () => {});
    const bodies: Record<string, Promise<unknown>> = {};
    const rest: Promise<unknown>[] = [];
    const heldAtEnd: boolean[] = [];
    const leases: { readonly held: boolean }[] = [];
    let finish = () => {};
    const end = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const body = async (lease: { held: boolean }) => {
      leases.push(lease);
      await end;
      heldAtEnd.push(lease.held);
      return "done";
    };
    const next = async (locks: Party["locks"], kind: (typeof KINDS)[number], name: string) =>
      rest.push(lockOf(locks, kind, name).withLock(() => {}));
    for (const kind of KINDS) {
      bodies[kind] = lockOf(near.locks, kind, freshName()).withLock(body);
      const contended = freshName();
      bodies[`${kind}, somebody else waits`] = lockOf(near.locks, kind, contended).withLock(body);
      await until(async () => lockOf(near.locks, kind, contended).isLocked());
      await next(far.locks, kind, contended);
      const own = freshName();
      bodies[`${kind}, a caller of the same client waits`] = lockOf(near.locks, kind, own).withLock(body);
      await until(async () => lockOf(near.locks, kind, own).isLocked());
      await next(near.locks, kind, own);
    }
    bodies.multiLock = near.locks.multiLock([freshName(), freshName()]).withLock(body);
    const handle = await near.locks.lock(freshName()).lock();
    await until(() => leases.length === Object.keys(bodies).length);
    if (!leases.every(({ held }) => held)) {
      // This machine stood still for longer than a lease.
      finish();
      await Promise.allSettled([...Object.values(bodies), ...rest, handle.unlock()]);
      return outcomes(server, stall);
    }
    server.suspend();
    finish();
    // Behind the bodies' end: a handle's release is confirmed, or it is not.
    const unlocked = handle.unlock().then(
      () => "released",
      ({ code }) => code,
    );
    setTimeout(() => server.resume(), stall);
    const told = await Promise.all(
      Object.entries(bodies).map(
        async ([how, body]) => [how, await body.catch((error: Error) => error)] as const,
      ),
    );
    await Promise.all(rest);
    return {
      bodies: Object.fromEntries(told.filter(([, outcome]) => outcome !== "done")),
      held: heldAtEnd.every(Boolean),
      lost,
      handle: await unlocked,
    };
  }

  it("for 1 to 10 s, contended and not, of every kind", async () => {
    const all = await Promise.all(
      STALLS.map(async (stall, i) => [stall, await outcomes(servers[i] as LocalServer, stall)] as const),
    );
    // Half a second before the reply timeout a busy machine may take either.
    const handle = (stall: number) =>
      stall === 4_600
        ? expect.stringMatching(/^(released|LOCK_UNAVAILABLE)$/)
        : stall < 5_000
          ? "released"
          : "LOCK_UNAVAILABLE";
    expect(Object.fromEntries(all)).toEqual(
      Object.fromEntries(
        STALLS.map((stall) => [stall, { bodies: {}, held: true, lost: [], handle: handle(stall) }]),
      ),
    );
  }, 60_000);
});

describe("a lease on a slow link", () => {
  const stage = new Stage({ near: { client: { localHandoffs: 0 } } });

  it.for([
    ["nobody waits", 0],
    ["another caller waits, and has it meanwhile", 1],
  ] as const)("ends during its release: unlock() resolves; %s", async ([, waiters]) => {
    const { near, far, proxy, lock } = stage;
    const { lost } = new Watched(near);
    const lease = await near.locks.lock(lock.name).lock({ lease: 1_500 });
    const waiting = waiters > 0 ? far.locks.lock(lock.name).lock() : null;
    await lock.queued(waiters);
    proxy.delay(2_500, { direction: "to server" });
    expect(lease.held).toBe(true);
    await lease.unlock();
    expect([lost, lease.signal.aborted]).toEqual([[], false]);
    proxy.delay(0);
    await (await waiting)?.unlock();
  });

  it("is deleted, and its unlock() is answered in time: that is a loss", async () => {
    const { near, far, lock } = stage;
    const { lost } = new Watched(near);
    const lease = await near.locks.lock(lock.name).lock();
    await far.redis.del(lock.keys.lock);
    await expect(lease.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "gone" });
    expect(lost).toMatchObject([{ reason: "gone" }]);
  });

  it("ends while its body still runs: that is a loss, however late it is noticed", async () => {
    const { near, lock } = stage;
    const { lost } = new Watched(near);
    const work = near.locks.lock(lock.name).withLock({ lease: 400 }, () => delay(700));
    await expect(work).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect(lost).toMatchObject([{ reason: "expired" }]);
  });
});

describe("a quorum lock", () => {
  const stage = new QuorumStage(3);

  it.for([4_000, 6_000])(
    "whose masters are suspended for %d ms at the end of a body: success",
    async (stall) => {
      const { locks } = await stage.join({ leaseTime: LEASE });
      const lost: unknown[] = [];
      locks.on("lost", (event) => lost.push(event));
      const done = locks.lock(stage.name).withLock(async (lease) => {
        for (const node of [1, 2, 3]) stage.server(node).suspend();
        setTimeout(() => {
          for (const node of [1, 2, 3]) stage.server(node).resume();
        }, stall);
        return lease.held;
      });
      expect(await done).toBe(true);
      expect(lost).toEqual([]);
    },
  );
});
