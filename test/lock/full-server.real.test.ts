// On a real Redis; in virtual time: test/world/directed/servers.test.ts.

import { afterEach, describe, expect, it } from "vitest";
import type { Lease } from "../../src/index.ts";
import { codes } from "../../src/redis/codes.generated.ts";
import { handoffLua as lua } from "../../src/redis/lua.generated.ts";
import { runs, Stage, timed } from "../support/stage.ts";

// Redis has no memory left and evicts nothing: it refuses commands that may need some, unless their
// script has written already.

const stage = new Stage({ near: { client: { localHandoffs: 0 } } });
const full = () => stage.far.redis.config("SET", "maxmemory", "1");
afterEach(async () => {
  await stage.far.redis.config("SET", "maxmemory", "0");
});

async function heldAndWaitedFor(
  options: { lease?: number } = {},
): Promise<{ held: Lease; waiting: Promise<Lease> }> {
  const { near, far, lock } = stage;
  const held = await far.locks.lock(lock.name).lock();
  const waiting = near.locks.lock(lock.name).lock(options);
  await lock.queued(1);
  return { held, waiting };
}

describe("a full server", () => {
  it("keeps a place in the queue when its command is sent again", async () => {
    const { far, lock } = stage;
    const { held, waiting } = await heldAndWaitedFor();
    const before = await lock.waiters();
    const [entry = ""] = await far.redis.zrange(lock.keys.queue, 0, "0");
    await full();
    const [, place = "", hold = ""] = /^(.* )(\S+)$/.exec(entry) ?? [];
    const copy = [hold, 30_000, Number.MAX_SAFE_INTEGER, place, 0, 16];
    const { lock: key, queue, clients, clock } = lock.keys;
    const answer = await far.redis.eval(lua.acquire.lua, 4, key, queue, clients, clock, ...copy);
    expect(answer).toMatchObject([codes.HELD, expect.any(String), expect.any(Number), 0, 0]);
    expect(await lock.waiters()).toEqual(before);
    await held.unlock();
    await (await waiting).unlock();
  });

  it("renews and extends holds", async () => {
    const { lock } = stage;
    const { locks } = await stage.join({ client: { leaseTime: 900 } });
    const lease = await locks.lock(lock.name).lock();
    await full();
    await new Promise((renewed) => locks.once("renew", renewed));
    await lease.extend(5_000);
    expect(await lock.left()).toBeGreaterThan(4_000);
    await lease.unlock();
    await lock.gone();
  });

  it("accepts the claim of a lock that it has handed over", async () => {
    const { lock } = stage;
    const { held, waiting } = await heldAndWaitedFor({ lease: 20_000 });
    await full();
    await held.unlock();
    const lease = await waiting;
    expect(lease.remaining).toBeGreaterThan(15_000);
    expect(await lock.left()).toBeGreaterThan(15_000);
    await lease.unlock();
    await lock.gone();
  });

  it("keeps the places of callers that re-check", async () => {
    const { lock } = stage;
    const { held, waiting } = await heldAndWaitedFor();
    const before = await lock.waiters();
    await full();
    await lock.lookedAt();
    await lock.lookedAt();
    expect(await lock.waiters()).toEqual(before);
    await held.unlock();
    await (await waiting).unlock();
    await lock.gone();
  });

  it("accepts a yield: the lock goes round", async () => {
    const { lock, proxy } = stage;
    const { held, others, own } = await stage.contended();
    await full();
    proxy.record();
    await held.unlock();
    expect(proxy.commands.some(({ command }) => runs("yield")(command))).toBe(true);
    const second = await others;
    await lock.queued(1);
    await second.unlock();
    await (await own).unlock();
    await lock.gone();
  });

  it("lets a crashed holder's lock go to the next waiter", async ({ annotate }) => {
    const { near, far, lock } = stage;
    await far.locks.lock(lock.name).tryLock(0, 1_500); // never unlocked
    const waiting = near.locks.lock(lock.name).lock();
    await lock.queued(1);
    await full();
    const [lease, waited] = await timed(waiting);
    await annotate(`after ${waited} ms`);
    expect(waited).toBeLessThan(3 * (1_500 + 1_875));
    await lease.unlock();
    await lock.gone();
  });

  it("removes places and locks: leave and force-release", async () => {
    const { near, lock } = stage;
    const { held, waiting } = await heldAndWaitedFor();
    const third = await stage.join();
    const leaving = third.locks.lock(lock.name).tryLock(1_500);
    await lock.queued(2);
    await full();
    expect(await leaving).toBeNull();
    await lock.queued(1);
    expect(await third.locks.lock(lock.name).forceUnlock()).toBe(true);
    const lease = await waiting;
    await expect(held.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    expect([lease.held, await lock.holder()]).toEqual([true, expect.stringContaining(near.locks.id)]);
    await lease.unlock();
    await lock.gone();
  });
});
