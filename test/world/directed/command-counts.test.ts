import { expect, test } from "vitest";
import type { Lease } from "../../../src/index.ts";
import { scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { warm } from "./steps.ts";

// How many scripts are sent. What else a connection carries is counted by a real server:
// test/lock/command-counts.test.ts.

/**
 * Counts what these processes send from now on. A recall may be read just after the release of its
 * hold, which is then withdrawn in vain: so withdrawals are counted apart.
 */
function counts(...all: readonly SceneProcess[]): { commands: number; withdrawals: number } {
  const seen = { commands: 0, withdrawals: 0 };
  for (const { member } of all) {
    const { network } = member;
    const { onStep } = network;
    network.onStep = (step, call, reply) => {
      if (step === "sent") seen[call.script.name.endsWith("leave") ? "withdrawals" : "commands"]++;
      onStep(step, call, reply);
    };
  }
  return seen;
}

test(
  "without contention: one to acquire and one to release",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    await warm(world, one, other);
    const seen = counts(one);
    for (const name of "abcdefghijklmnopqrst") await (await one.take("lock", { name })).unlock();
    expect(seen).toEqual({ commands: 40, withdrawals: 0 });
  }),
);

test.each([2, 8, 32])("%i processes that wait for each other: two for each acquisition", (count) =>
  scene(async (world) => {
    const all = Array.from({ length: count }, () => world.processes(1)[0]);
    const [first, second] = all as [SceneProcess, SceneProcess];
    for (const one of all) await warm(world, one, one === first ? second : first);
    const seen = counts(...all);
    await Promise.all(
      all.map(async (one) => {
        for (let i = 0; i < 10; i++) await (await one.take("lock")).unlock();
      }),
    );
    expect(seen.commands).toBeLessThanOrEqual(2 * 10 * count);
    expect(seen.withdrawals).toBeLessThanOrEqual(10 * count);
  })(),
);

test(
  "a hundred callers of a fair lock that come at once, before any subscription: two each",
  scene(async (world) => {
    const [one] = world.processes(1);
    const seen = counts(one);
    await Promise.all(Array.from({ length: 100 }, async () => (await one.take("fairLock")).unlock()));
    // And the first one's try, and the self-test of the new subscription.
    expect(seen.commands + seen.withdrawals).toBeLessThanOrEqual(2.2 * 100);
  }),
);

test(
  "an explicit lease that outlives the grant window: one more, for the claim",
  scene(async (world) => {
    const [holder, ...all] = world.processes(9);
    for (const one of all) await warm(world, one, holder);
    const held = await holder.take("lock");
    const seen = counts(holder, ...all);
    const turns = all.map(async (one) => {
      const lease = await one.take("lock", { lease: 29_000 });
      expect(lease.lease.remaining).toBeGreaterThan(20_000);
      await lease.unlock();
    });
    await world.until(() => world.redis.queue("lock:a").length === 8);
    await held.unlock();
    await Promise.all(turns);
    // 8 places, the first release, then a claim and a release for each.
    expect(seen.commands).toBe(8 + 1 + 16);
  }),
);

test(
  "a thousand waiters of one process: one for four acquisitions",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    await warm(world, one, other);
    const held = await one.take("lock");
    const turns = Array.from({ length: 1_000 }, async () => (await one.take("lock")).unlock());
    await world.pass(5);
    const seen = counts(one);
    await held.unlock();
    await Promise.all(turns);
    expect(seen.commands + seen.withdrawals).toBeLessThanOrEqual(250);
  }),
);

test(
  "to renew a thousand leases: a dozen a period",
  scene(async (world) => {
    const [one] = world.processes(1, { leaseTime: 6_000 });
    const leases: Lease[] = [];
    // Taken over a stretch of time, as in life: renewals must be brought together.
    for (let round = 0; round < 10; round++) {
      const names = Array.from({ length: 100 }, (_, i) => `${round} ${i}`);
      leases.push(...(await one.does(() => Promise.all(names.map((name) => one.client.lock(name).lock())))));
      await world.pass(20);
    }
    const renewals = one.heard("renew");
    const seen = counts(one);
    await world.until(() => renewals.length >= 2_000);
    expect(seen.commands / (renewals.length / 1_000)).toBeLessThanOrEqual(12);
    expect(leases.every(({ held }) => held)).toBe(true);
    await one.does(() => Promise.all(leases.map((lease) => lease.unlock())));
  }),
);
