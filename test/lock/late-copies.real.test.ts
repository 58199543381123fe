// On a real Redis; in virtual time: test/world/directed/resent-commands.test.ts.

import { describe, expect, it } from "vitest";
import type { Lease } from "../../src/index.ts";
import type { HeldCommand } from "../support/proxy-connection.ts";
import { runs, Stage } from "../support/stage.ts";
import type { Match } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// The network keeps a command back, its connection breaks, ioredis sends it again on a new one, and
// life goes on. Then the old bytes arrive. (Of a first acquire and of a plain release:
// resent-commands.faults.test.ts.)

const REPLY_TIMEOUT = 1_000;
const stage = new Stage({ near: { client: { localHandoffs: 0, replyTimeout: REPLY_TIMEOUT } } });

/** Has the next such command kept back. */
const keep = (match: Match): Promise<HeldCommand> => stage.proxy.holdCommand(match);

/** Resolves when everything that was sent before now is too late by the server's clock. */
async function outdated(): Promise<void> {
  const now = async (): Promise<number> => {
    const [seconds, micros] = await stage.far.redis.time();
    return Number(seconds) * 1_000 + Number(micros) / 1_000;
  };
  const begin = await now();
  await until(async () => (await now()) > begin + 2 * REPLY_TIMEOUT, {
    what: "the time of a command to pass",
  });
}

/** What Redis knows of the lock, but for the time that is left. */
async function scene(): Promise<unknown> {
  const { far, lock } = stage;
  const { lock: key, queue, clients } = lock.keys;
  return [
    await far.redis.get(key),
    await far.redis.zrange(queue, "0", "-1"),
    await far.redis.zrange(clients, "0", "-1", "WITHSCORES"),
  ];
}

/** Delivers the old bytes and expects that they change nothing. */
async function expectNoChange(kept: HeldCommand): Promise<void> {
  const before = await scene();
  await kept.deliver();
  expect(await scene()).toEqual(before);
}

const held = (): Promise<Lease> => stage.far.locks.lock(stage.lock.name).lock();

/** `far` holds the lock, `near` waits for it, and the network has a copy of the command that queued. */
async function copyOfQueueing(): Promise<{ first: Lease; waiting: Promise<Lease>; kept: HeldCommand }> {
  const { near, lock } = stage;
  await stage.warm(near);
  const first = await held();
  const keeping = keep(runs("acquire", "queue"));
  const waiting = near.locks.lock(lock.name).lock();
  const kept = await keeping;
  await lock.queued(1);
  return { first, waiting, kept };
}

describe("a late copy changes nothing", () => {
  it("of the acquire that queued: its caller has held the lock and is gone, so it is stale", async () => {
    const { lock } = stage;
    const { first, waiting, kept } = await copyOfQueueing();
    await first.unlock();
    await (await waiting).unlock();
    const other = await held();
    await outdated();
    await expectNoChange(kept);
    await other.unlock();
    await lock.gone();
  });

  it("of the acquire that queued: while its caller still waits in that place", async () => {
    const { lock } = stage;
    const { first, waiting, kept } = await copyOfQueueing();
    // Its client looks again when its connection is back, which is a change; and then not for 1.1 s.
    await lock.lookedAt();
    await expectNoChange(kept);
    await first.unlock();
    await (await waiting).unlock();
    await lock.gone();
  });

  it("of a re-check: its place was granted and given back; with the lock free, and with another holder", async () => {
    const { near, lock } = stage;
    for (const ends of ["free", "held"]) {
      const first = await held();
      const keeping = keep(runs("acquire", "again"));
      const waiting = near.locks.lock(lock.name).lock();
      const kept = await keeping;
      await first.unlock();
      await (await waiting).unlock();
      const other = ends === "held" ? await held() : null;
      await expectNoChange(kept); // "gone": it queues nothing, and takes nothing
      await other?.unlock();
      await lock.gone();
    }
  });

  it("of a release that handed over: the next holder keeps the lock, and so does the one after", async () => {
    const { near, far, lock } = stage;
    const first = await near.locks.lock(lock.name).lock();
    const waiting = far.locks.lock(lock.name).lock();
    await lock.queued(1);
    const keeping = keep(runs("release"));
    const unlocked = first.unlock();
    const kept = await keeping;
    await unlocked;
    const second = await waiting;
    await expectNoChange(kept);
    expect(second.held).toBe(true);
    await second.unlock();
    await lock.gone();
  });

  it("of a yield: the old hold ended, the new one had its turn, and nothing is queued again", async () => {
    const { lock } = stage;
    for (const ends of ["free", "held"]) {
      const { held: first, others, own } = await stage.contended();
      const keeping = keep(runs("yield"));
      const unlocked = first.unlock();
      const kept = await keeping;
      await unlocked;
      await (await others).unlock();
      await (await own).unlock();
      await lock.gone();
      const later = ends === "held" ? await held() : null;
      await expectNoChange(kept);
      await later?.unlock();
      await lock.gone();
    }
  });

  it("of a leave: its client waits and holds again, with other holds", async () => {
    const { near, lock } = stage;
    const first = await held();
    const keeping = keep(runs("leave"));
    await stage.giveUp(near);
    const kept = await keeping;
    await lock.queued(0);
    const waiting = near.locks.lock(lock.name).lock();
    await lock.queued(1);
    await expectNoChange(kept);
    await first.unlock();
    await (await waiting).unlock();
    await lock.gone();
  });

  it("of a renewal: it neither shortens a longer lease nor revives an ended one", async () => {
    const { near, far, lock } = stage;
    const lease = await near.locks.lock(lock.name).lock({ lease: 5_000 });
    const keeping = keep(runs("renew"));
    await lease.extend(6_000);
    const kept = await keeping;
    await lease.extend(60_000);
    await expectNoChange(kept);
    expect(await lock.left()).toBeGreaterThan(50_000);
    await lease.unlock();

    const again = await near.locks.lock(lock.name).lock({ lease: 5_000 });
    const keepingToo = keep(runs("renew"));
    await again.extend(60_000);
    const late = await keepingToo;
    await again.unlock();
    await expectNoChange(late); // the lock is free
    const other = await far.locks.lock(lock.name).lock({ lease: 5_000 });
    expect(await lock.left()).toBeLessThanOrEqual(5_000);
    await other.unlock();
  });

  it("of a claim: its caller has unlocked, and another caller holds the lock", async () => {
    const { near, far, lock } = stage;
    const first = await held();
    const waiting = near.locks.lock(lock.name).lock({ lease: 60_000 });
    await lock.queued(1);
    const keeping = keep(runs("renew"));
    await first.unlock();
    const kept = await keeping;
    await (await waiting).unlock();
    const other = await far.locks.lock(lock.name).lock({ lease: 5_000 });
    await expectNoChange(kept);
    expect(await lock.left()).toBeLessThanOrEqual(5_000);
    await other.unlock();
  });
});

describe("a late copy that has an effect", () => {
  // The one command that names no hold: it ends the hold of the day, and a copy ends that of the next day.
  it("of a force-release takes the lock from its holder of that moment; the holder is notified, and no caller enters beside another", async () => {
    const { near, lock } = stage;
    const first = await held();
    const keeping = keep(runs("forceRelease"));
    expect(await near.locks.lock(lock.name).forceUnlock()).toBe(true);
    const kept = await keeping;
    await expect(first.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    const second = await held();
    await kept.deliver();
    expect(await lock.holder()).toBe("");
    await expect(second.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  });

  it("of a fair lock's first acquire before its deadline owns a hold without a caller: others wait for its lease", async ({
    annotate,
  }) => {
    const { near, far, lock } = stage;
    await stage.warm(near); // the server's clock is known
    const keeping = keep(runs("acquire"));
    const waiting = near.locks.fairLock(lock.name).lock({ lease: 2_000 });
    const kept = await keeping;
    await (await waiting).unlock();
    await kept.deliver(); // within the reply timeout: it is not stale
    const left = await lock.left();
    await annotate(`a ghost for ${left} ms`);
    expect(left).toBeLessThanOrEqual(2_000);
    const lease = await far.locks.fairLock(lock.name).lock();
    expect(lease.held).toBe(true);
    await lease.unlock();
    await lock.gone();
  });
});
