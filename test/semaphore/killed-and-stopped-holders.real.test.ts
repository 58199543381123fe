// On a real Redis; in virtual time: test/world/directed/semaphore.test.ts.

import { expect, it, onTestFinished } from "vitest";
import type { Semaphore } from "../../src/index.ts";
import { Actor } from "../support/actor.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { turnOf } from "../support/turn.ts";
import { until } from "../support/until.ts";

// Holders of permits that die, stand still, or whose permits Redis forgets.

const own = new OwnServer();
const LEASE = 600;

/** A process of its own with the one permit of a semaphore, and that semaphore as a client here sees it. */
async function scene(
  lease?: number,
): Promise<{ actor: Actor; handle: number; turn: number; slots: Semaphore }> {
  const name = freshName();
  const actor = await Actor.start({ url: own.url, client: { leaseTime: LEASE } });
  onTestFinished(() => actor.end());
  const held = await actor.call("acquire", "permit", name, 0, lease);
  const { locks } = await own.parties.join({ url: own.url });
  const { handle = -1, token: turn = 0 } = held ?? {};
  return { actor, handle, turn, slots: locks.semaphore(name, { permits: 1 }) };
}
const waiting = (slots: Semaphore, count: number): Promise<unknown> =>
  until(async () => (await slots.inspect()).waiters.length === count);

it("a killed holder's permits go to the first caller after its lease, without a sweep", async () => {
  const { actor, slots, turn } = await scene();
  actor.kill();
  await actor.exit;
  const [{ remaining = 0 } = {}] = (await slots.inspect()).holders;
  expect(await slots.tryAcquire()).toBeNull();
  // Nobody waits, and nothing is sent meanwhile.
  await new Promise((over) => setTimeout(over, remaining + 5));
  const lease = await slots.tryAcquire();
  expect(lease && turnOf(lease)).toBeGreaterThan(turn);
  expect((await slots.inspect()).used).toBe(1);
  await lease?.release();
});

it("a killed holder leaves nothing in Redis, even if no caller comes any more", async () => {
  const { actor, slots } = await scene(100);
  actor.kill();
  await until(async () => (await own.admin.keys(`*{${slots.name}}*`)).length === 0);
});

it("a stopped holder's leases are over when it resumes, and the next holder keeps its permits", async () => {
  const { actor, slots, handle, turn } = await scene();
  const next = slots.acquire();
  await waiting(slots, 1);
  actor.kill("SIGSTOP");
  const lease = await next;
  expect(turnOf(lease)).toBeGreaterThan(turn);
  actor.kill("SIGCONT");
  expect(await actor.call("state", handle)).toMatchObject({ held: false, aborted: true });
  await expect(actor.call("unlock", handle)).rejects.toMatchObject({ code: "LOCK_LOST" });
  expect([lease.held, (await slots.inspect()).used]).toEqual([true, 1]);
  await lease.release();
});

it("a waiter that is stopped until its grant is over has nothing when it resumes, and is granted again", async () => {
  const name = freshName();
  const client = { grantWindow: 500 };
  const [actor, a] = await Promise.all([
    Actor.start({ url: own.url, client }),
    own.parties.join({ url: own.url }),
  ]);
  onTestFinished(() => actor.end());
  const slots = a.locks.semaphore(name, { permits: 1 });
  const held = await slots.acquire();
  const granted = actor.call("acquire", "permit", name, 20_000, 30_000);
  await waiting(slots, 1);
  actor.kill("SIGSTOP");
  await held.release();
  const lease = await slots.acquire(); // behind the window
  actor.kill("SIGCONT");
  await waiting(slots, 1);
  expect([lease.held, (await slots.inspect()).used]).toEqual([true, 1]);
  await lease.release();
  expect((await granted)?.token).toBeGreaterThan(turnOf(lease));
});

it.each(["FLUSHALL", "DEL"])(
  "%s: holders notice at their next renewal, and waiters get what there is, and not more",
  async (how) => {
    const name = freshName();
    const [a, b] = await Promise.all([
      own.parties.join({ url: own.url, client: { leaseTime: LEASE } }),
      own.parties.join({ url: own.url }),
    ]);
    const [mine, theirs] = [a, b].map(({ locks }) => locks.semaphore(name, { permits: 2 })) as [
      Semaphore,
      Semaphore,
    ];
    const old = [await mine.acquire(), await mine.acquire()];
    const told = old.map(({ signal }) => until(() => signal.aborted));
    const next = [1, 2, 3].map(() => theirs.acquire());
    await waiting(theirs, 1); // a place for all of them
    if (how === "DEL") await own.admin.del(`holdfast:semaphore:{${name}}`);
    else await own.admin.flushall();
    await Promise.all(told);
    for (const { signal } of old) expect(signal.reason).toMatchObject({ reason: "gone" });
    const turns: number[] = [];
    let inside = 0;
    await Promise.all(
      next.map(async (one) => {
        const lease = await one;
        expect(++inside).toBeLessThanOrEqual(2);
        expect((await theirs.inspect()).used).toBeLessThanOrEqual(2);
        turns.push(turnOf(lease));
        inside--;
        await lease.release();
      }),
    );
    expect(new Set(turns).size).toBe(3);
    expect(Math.min(...turns)).toBeGreaterThan(Math.max(...old.map(turnOf)));
  },
);
