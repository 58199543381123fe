// On a real Redis; in virtual time: test/world/directed/stopped-processes.test.ts.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Actor } from "../support/actor.ts";
import { freshName, Parties, type Party, testUrl } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { timed } from "../support/stage.ts";
import { until } from "../support/until.ts";

// Real processes, killed, stopped and blocked. Time bounds are a third, or less, of what the
// failure would take.

const parties = new Parties();
let here: Party;

beforeAll(async () => {
  here = await parties.join();
});
afterAll(parties.close);

/** Resolves when so many wait in the queue in Redis. */
const queued = (name: string, count: number): Promise<unknown> =>
  new Onlooker(here.redis, name).queued(count);

describe("a waiter at the head of the queue", () => {
  it("stopped with SIGSTOP costs a window and a re-check, and does not enter while another caller holds the lock", async () => {
    const name = freshName();
    const held = await here.locks.lock(name).lock();
    const actor = await Actor.start({ url: testUrl() });
    let entered = false;
    const stopped = actor.call("acquire", "lock", name, 60_000).then((result) => {
      entered = true;
      return result;
    });
    await queued(name, 1);
    const next = (await parties.join()).locks.lock(name).lock();
    await queued(name, 2);
    actor.kill("SIGSTOP");
    await held.unlock();
    const [lease, waited] = await timed(next);
    expect(waited).toBeLessThan(10_000); // 4.9 s at the most; the actor's whole lease would be 30 s
    expect(waited).toBeGreaterThan(2_500); // it did get the window: a receiver is not a reader
    actor.kill("SIGCONT");
    // It reads a grant that is over, and queues again.
    await queued(name, 1);
    expect(entered).toBe(false);
    expect(lease.held).toBe(true);
    const { token } = lease;
    await lease.unlock();
    const granted = await stopped;
    expect(granted?.token).toBeGreaterThan(token);
    await actor.end();
  }, 30_000);
});

describe("a holder", () => {
  it("that blocks its event loop for 5 s, 200 ms into the body after a contended wait, still holds", async () => {
    const name = freshName();
    const held = await here.locks.lock(name).lock();
    const actor = await Actor.start({ url: testUrl() });
    const waiting = actor.call("acquire", "lock", name, 60_000);
    await queued(name, 1);
    await held.unlock();
    const granted = await waiting;
    if (!granted) throw new Error("not acquired");
    // Granted by message it has the window of 3 s; the claim after 100 ms raises it to the whole lease.
    await until(async () => ((await here.locks.lock(name).inspect()).remaining ?? 0) > 20_000, {
      what: "the claim",
    });
    await actor.call("block", 5_000);
    expect(await actor.call("state", granted.handle)).toMatchObject({ held: true, aborted: false });
    expect((await here.locks.lock(name).inspect()).token).toBe(granted.token);
    expect(await here.locks.lock(name).tryLock()).toBeNull();
    await actor.end();
  }, 30_000);

  it("stopped for several leases, with watchdog: it resumes as a former holder, and harms no one", async () => {
    const name = freshName();
    const actor = await Actor.start({ url: testUrl(), client: { leaseTime: 600 } });
    const granted = await actor.call("acquire", "lock", name, 0);
    if (!granted) throw new Error("not acquired");
    await actor.call("watchStop", granted.handle);
    const lock = here.locks.lock(name);
    const waiting = lock.lock();
    await queued(name, 1);
    actor.kill("SIGSTOP");
    const [lease, waited] = await timed(waiting);
    expect(waited).toBeLessThan(3 * (600 + 1_875));
    const since = performance.now();
    await until(() => performance.now() > since + 3 * 600, { what: "several leases to go by" });
    actor.kill("SIGCONT");
    const report = await until(() => actor.call("stopReport", granted.handle), { what: "the report" });
    expect(report).toEqual({ heldAfterStop: false, abortedSoon: true });
    await expect(actor.call("unlock", granted.handle)).rejects.toMatchObject({ reason: "expired" });
    // its late renewals did nothing
    expect([lease.held, (await lock.inspect()).token]).toEqual([true, lease.token]);
    await lease.unlock();
    const again = await actor.call("acquire", "lock", name, 0);
    expect(again?.token).toBeGreaterThan(lease.token);
    await actor.end();
  }, 30_000);

  it("that blocks its event loop for longer than its lease knows of the loss in the next statement", async () => {
    const name = freshName();
    const actor = await Actor.start({ url: testUrl(), client: { leaseTime: 600 } });
    const granted = await actor.call("acquire", "lock", name, 0);
    if (!granted) throw new Error("not acquired");
    await actor.call("watchStop", granted.handle);
    const waiting = here.locks.lock(name).lock();
    await queued(name, 1);
    const blocked = actor.call("block", 3_000);
    const lease = await waiting; // while the other one is blocked
    expect(lease.token).toBeGreaterThan(granted.token);
    await blocked;
    const report = await until(() => actor.call("stopReport", granted.handle), { what: "the report" });
    expect(report).toEqual({ heldAfterStop: false, abortedSoon: true });
    expect([lease.held, (await here.locks.lock(name).inspect()).token]).toEqual([true, lease.token]);
    await lease.unlock();
    await actor.end();
  }, 30_000);
});

describe("a waiter that was suspended for longer than its place lasts", () => {
  it("queues again when it resumes; a grant that it reads late has no effect", async () => {
    const name = freshName();
    const held = await here.locks.lock(name).lock();
    const actor = await Actor.start({ url: testUrl() });
    const waiting = actor.call("acquire", "lock", name, 60_000);
    await queued(name, 1);
    actor.kill("SIGSTOP");
    await until(async () => (await here.locks.lock(name).inspect()).waiters?.length === 0, {
      what: "its place to end",
      timeout: 15_000,
    });
    actor.kill("SIGCONT");
    await queued(name, 1);
    await held.unlock();
    const granted = await waiting;
    expect(granted?.token).toBeGreaterThan(held.token);
    await actor.end();
  }, 30_000);
});
