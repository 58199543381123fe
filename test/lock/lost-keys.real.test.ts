// On a real Redis; in virtual time: test/world/directed/{servers,redis-failures}.test.ts.

import { describe, expect, it } from "vitest";
import { freshName } from "../support/fixture.ts";
import { Stage, timed, timedAwake } from "../support/stage.ts";
import { until } from "../support/until.ts";

// Somebody deletes keys of a lock, Redis evicts them, or they hold something else: under a holder,
// and under waiters.

/** Longer than a busy machine stands still, and renewed after a third of it. */
const LEASE = 9_000;
const stage = new Stage({ near: { client: { leaseTime: LEASE } } });

/** A holder with a watchdog, and two clients that wait behind it in this order. */
async function heldAndWaitedFor() {
  const { near, far, lock } = stage;
  const third = await stage.join();
  const lease = await near.locks.lock(lock.name).lock();
  const waiting = far.locks.lock(lock.name).lock();
  await lock.queued(1);
  const last = third.locks.lock(lock.name).lock();
  await lock.queued(2);
  return { lease, waiting, last };
}

/**
 * Both waiters have their turns, one at a time, in whatever order; resolves with the ms awake until
 * the first had it.
 */
async function turns(...all: Promise<{ token: number; unlock(): Promise<void> }>[]): Promise<number> {
  let inside = 0;
  const tokens: number[] = [];
  const [, waited] = await timedAwake(Promise.race(all));
  const visits = all.map(async (waiting) => {
    const lease = await waiting;
    expect(++inside).toBe(1);
    tokens.push(lease.token);
    await stage.far.redis.ping();
    inside--;
    await lease.unlock();
  });
  await Promise.all(visits);
  expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
  // What re-checks have written goes by itself.
  const { lock, queue, clients } = stage.lock.keys;
  expect(await stage.far.redis.exists(lock, queue)).toBe(0);
  expect(await stage.far.redis.pttl(clients)).not.toBe(-1);
  return waited;
}

describe("a key is deleted while the lock is held and waited for", () => {
  it("the lock: a waiter has it at its re-check, the holder is notified at its renewal", async ({
    annotate,
  }) => {
    const { far, lock } = stage;
    const { lease, waiting, last } = await heldAndWaitedFor();
    const { signal } = lease;
    const told = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    await far.redis.del(lock.keys.lock);
    const [[, knew], waited] = await Promise.all([timed(told), turns(waiting, last)]);
    await annotate(`a waiter has it after ${waited} ms, the holder knows after ${knew} ms`);
    expect(["gone", "taken"]).toContain(signal.reason.reason); // not "expired"
    expect(waited).toBeLessThan(3 * 1_925);
  });

  it.each([
    ["the queue", ["queue"]],
    ["the clients that re-check", ["clients"]],
    ["both", ["queue", "clients"]],
  ] as const)("%s: the holder notices nothing, the waiters queue again or are found", async (_, parts) => {
    const { far, lock } = stage;
    const { lease, waiting, last } = await heldAndWaitedFor();
    await far.redis.del(...parts.map((part) => lock.keys[part]));
    await lease.unlock();
    const waited = await turns(waiting, last);
    expect(waited).toBeLessThan(3 * 1_925);
  });

  it("the clients that re-check, while the holder stays: the next re-checks restore them", async () => {
    const { far, lock } = stage;
    const { lease, waiting, last } = await heldAndWaitedFor();
    const { clients } = lock.keys;
    const areThere = (what: string) => until(async () => (await far.redis.zcard(clients)) === 2, { what });
    await areThere("both clients to look");
    await far.redis.del(clients);
    await areThere("both clients to look again");
    await lease.unlock();
    expect(await turns(waiting, last)).toBeLessThan(1_000); // by message
  });

  it("the clock: tokens go on growing", async () => {
    const { far, lock } = stage;
    const { lease, waiting, last } = await heldAndWaitedFor();
    await far.redis.del(lock.keys.clock);
    await lease.unlock();
    expect((await waiting).token).toBeGreaterThan(lease.token);
    await far.redis.del(lock.keys.clock);
    await turns(waiting, last);
  });

  it("all of them: the holder is notified, the waiters get their turns, tokens grow", async ({
    annotate,
  }) => {
    const { far } = stage;
    const { lease, waiting, last } = await heldAndWaitedFor();
    await far.redis.flushall();
    const waited = await turns(waiting, last);
    await annotate(`the first one after ${waited} ms`);
    expect((await waiting).token).toBeGreaterThan(lease.token);
    await until(() => lease.signal.aborted, { what: "the holder's signal" });
    expect(["gone", "taken"]).toContain(lease.signal.reason.reason);
  });
});

describe("a key of another type", () => {
  it.each(["queue", "clients", "clock"] as const)(
    "%s: calls get typed errors, no caller enters, and work resumes when it is removed",
    async (part) => {
      const { near, far, lock } = stage;
      near.locks.on("error", () => {});
      const { lease, waiting, last } = await heldAndWaitedFor();
      let isIn = false;
      const watched = [waiting, last].map((one) => one.finally(() => (isIn = true)));
      const key = lock.keys[part];
      await far.redis.del(key);
      await far.redis.rpush(key, "an element");
      const wrong = { code: "LOCK_UNAVAILABLE", cause: { message: expect.stringContaining("WRONGTYPE") } };
      if (part === "queue") await expect(lease.unlock()).rejects.toMatchObject(wrong);
      else await lease.unlock();
      // A token needs the clock; what was looked up of a client that waits proves nothing against it.
      if (part !== "clients") {
        const free = part === "clock" ? freshName() : lock.name; // all locks have one clock
        await expect(near.locks.lock(free).lock({ wait: 300 })).rejects.toMatchObject(wrong);
        expect(isIn).toBe(false);
      }
      await far.redis.del(key);
      await turns(...watched);
    },
  );
});
