import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { redissonLock } from "../../src/redisson.ts";
import { Duet } from "../support/duet.ts";
import { freshName } from "../support/fixture.ts";
import { staysQuiet } from "../support/quiet.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import type { ClusterNode } from "../support/servers/cluster-node.ts";
import type { SlotMove } from "../support/servers/slot-move.ts";
import { throughProxies } from "../support/servers/through-proxies.ts";
import { timed, timedAwake } from "../support/stage.ts";
import { until } from "../support/until.ts";

// The slot of a lock moves to another primary, step by step, while the lock is held and waited for.
// Between the steps some of its keys are here and some are there: scripts that name several are
// answered TRYAGAIN, those with one are not.

const LEASE = 3_000;
staysQuiet();
let cluster: RedisCluster;
let duet: Duet;

beforeAll(async () => {
  cluster = await RedisCluster.launch();
});
beforeEach(async () => {
  duet = await Duet.of(() => cluster.connect(), { isCluster: true, leaseTime: LEASE });
});
afterEach(async () => {
  await duet.end();
});
afterAll(() => cluster.stop());

/** A move of the lock's slot; half of it: some of the lock's keys have gone. */
async function halfMoved(): Promise<SlotMove> {
  const { lock } = duet.lock.keys;
  const owner = await cluster.primaryOf(lock);
  const [target] = (await cluster.primaries()).filter((node) => node !== owner);
  if (target === undefined) throw new Error("There is one primary only");
  const move = await cluster.startMove(await cluster.slotOf(lock), target);
  await move.open();
  return move;
}

describe("a slot moves while its lock is held and waited for", () => {
  it("renewals and extensions work at every step, and the waiter has the lock at the end", async ({
    annotate,
  }) => {
    const { holder, waiter } = duet;
    const { held, waiting } = await duet.begin();
    const move = await halfMoved();
    const step = async (what: string): Promise<void> => {
      const [, took] = await timedAwake(held.extend(LEASE + 1_000));
      await annotate(`${what}: extended in ${took} ms`);
      // By the lock alone, at once: ioredis would try with all its keys for 1.6 s.
      expect(took).toBeLessThan(1_000);
      await new Promise((renewed) => holder.locks.once("renew", renewed)); // by the watchdog
      expect([held.held, held.signal.aborted]).toEqual([true, false]);
    };
    await step("opened");
    while ((await move.keys(1)) > 0) await step("one key more");
    await move.close();
    await cluster.usable();
    await step("closed");
    await held.unlock();
    const [next, waited] = await timed(waiting);
    await annotate(`the waiter has it ${waited} ms later`);
    expect([next.held, next.token > held.token]).toEqual([true, true]);
    expect(await duet.lock.holder()).toContain(waiter.locks.id);
    await next.unlock();
    await duet.expectMessages();
  }, 60_000);

  it.each([1, 2, 3])(
    "an unlock when %i of its keys have gone settles when the others follow, one way or the other; then the waiter has it",
    async (gone) => {
      const { lock } = duet;
      const { held, waiting } = await duet.begin();
      const move = await halfMoved();
      await move.keys(gone);
      const unlocked = held.unlock().catch((error: unknown) => error);
      const isSaid = Promise.race([
        unlocked.then(() => true),
        until(() => !held.held, { what: "it to be sent" }),
      ]);
      await isSaid;
      await move.keys();
      await move.close();
      await cluster.usable();
      const outcome = await unlocked;
      if (outcome !== undefined) expect(outcome).toMatchObject({ code: "LOCK_UNAVAILABLE" });
      const next = await waiting;
      expect([next.held, next.token > held.token]).toEqual([true, true]);
      await next.unlock();
      await lock.gone();
      await duet.expectMessages();
    },
    60_000,
  );

  it("in one step, as Valkey 9 does: holders keep the lock, and the waiter has it afterwards", async ({
    annotate,
    skip,
  }) => {
    const { lock } = duet.lock.keys;
    const slot = await cluster.slotOf(lock);
    const owner = await cluster.primaryOf(slot);
    const [known] = (await owner.admin.call("COMMAND", "INFO", "CLUSTER|MIGRATESLOTS")) as unknown[];
    skip(!known, "this server moves slots key by key");
    const [target] = (await cluster.primaries()).filter((node) => node !== owner);
    if (target === undefined) throw new Error("There is one primary only");
    const { held, waiting } = await duet.begin();
    const to = ["SLOTSRANGE", `${slot}`, `${slot}`, "NODE", target.id];
    await owner.admin.call("CLUSTER", "MIGRATESLOTS", ...to);
    await until(async () => (await cluster.primaryOf(slot)) === target, { what: "the slot to have moved" });
    await cluster.usable();
    await held.extend(LEASE + 1_000);
    expect([held.held, held.signal.aborted]).toEqual([true, false]);
    const { unlocking, waited } = await duet.handOn(held, waiting);
    await annotate(`unlock ${unlocking} ms, the waiter has it ${waited} ms later`);
  }, 60_000);

  it("a move that stalls half-way for longer than ioredis retries: typed errors, and work resumes afterwards", async ({
    annotate,
  }) => {
    const { holder, waiter, lock } = duet;
    const { held, waiting } = await duet.begin();
    const move = await halfMoved();
    await move.keys(1);
    const [outcome, took] = await timed(held.unlock().catch((error: unknown) => error));
    await annotate(`unlock() after ${took} ms: ${outcome}`);
    expect(outcome).toMatchObject({ code: "LOCK_UNAVAILABLE" });
    await expect(holder.locks.lock(lock.name).inspect()).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    await move.keys();
    await move.close();
    await cluster.usable();
    const [next, waited] = await timed(waiting);
    await annotate(`the waiter has it ${waited} ms after the move`);
    expect(await lock.holder()).toContain(waiter.locks.id);
    await next.unlock();
    await duet.expectMessages();
  }, 60_000);
});

it.each([
  ["for good", 1],
  ["and back", 2],
])(
  "a slot moves %s during a SUBSCRIBE to its node: the waiters there receive messages again",
  async (_, moves) => {
    const proxied = await throughProxies(cluster);
    const near = await Duet.of(() => proxied.connect(), { isCluster: true });
    const moving = freshName();
    const from = await cluster.primaryOf(moving);
    const [target] = (await cluster.primaries()).filter((node) => node !== from);
    if (target === undefined) throw new Error("There is one primary only");
    let neighbour = freshName();
    while ((await cluster.primaryOf(neighbour)) !== from) neighbour = freshName();
    const heard = async (node: ClusterNode, name: string): Promise<number> =>
      Number(
        (
          (await node.admin.call("PUBSUB", "SHARDNUMSUB", `redisson_lock__channel:{${name}}`)) as unknown[]
        )[1],
      );
    const { locks } = near.waiter;
    const [held, other] = await Promise.all(
      [moving, neighbour].map((name) => redissonLock(duet.holder.locks, name).lock({ lease: 60_000 })),
    );
    const waiting = redissonLock(locks, moving).lock();
    await until(async () => (await heard(from, moving)) === 1);
    const proxy = proxied.proxyOf(from.server);
    proxy.delay(3_000, { direction: "to server", which: "subscribers" });
    const told = new Promise<void>((resolve) => locks.once("wait", () => resolve()));
    const second = redissonLock(locks, neighbour).lock();
    await told; // now it subscribes
    const homes = [target, from].slice(0, moves);
    for (const home of homes) await cluster.migrateSlot(await cluster.slotOf(moving), home);
    expect(await heard(from, neighbour)).toBe(0);
    await until(async () => (await heard(from, neighbour)) === 1);
    proxy.delay(0);
    await until(async () => (await heard(homes.at(-1) ?? from, moving)) === 1, {
      what: "the channel at its home",
    });
    await held?.unlock();
    const [lease, waited] = await timed(waiting);
    expect(waited).toBeLessThan(5_000); // else at the end of a lease
    await lease.unlock();
    await other?.unlock();
    await (await second).unlock();
    await near.end();
    await proxied.stop();
  },
  60_000,
);
