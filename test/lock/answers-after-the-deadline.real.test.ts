// On a real Redis; in virtual time: test/world/directed/late-answers.test.ts.

import { expect, it, vi } from "vitest";
import type { LockClient } from "../../src/index.ts";
import { Keys } from "../../src/redis/keys.ts";
import { redissonLock } from "../../src/redisson.ts";
import { Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

// A command about a lease is under way when the lease runs out by the wall clock, as while the
// machine sleeps. Redis then answers that the lock is gone, or that another client has it. That
// explains nothing: the lease has expired, and so the loss says.

const HOUR = 3_600_000;
const stage = new Stage();
const keys = new Keys("", false);

interface Form {
  readonly keyOf: (name: string) => string;
  /** Another client takes the lock, whose key is gone. */
  readonly take: (locks: LockClient, name: string) => Promise<unknown>;
  /** Acquires it, and sends a command about it between the calls of these. */
  readonly run: (locks: LockClient, name: string, freeze: () => void, lapse: () => void) => Promise<unknown>;
}

const takeLock: Form["take"] = (locks, name) => locks.lock(name).lock();

const forms: Record<string, Form> = {
  "term.proclaim()": {
    keyOf: (name) => keys.ofElection(name).lock,
    take: (locks, name) => locks.election(name).campaign(),
    async run(locks, name, freeze, lapse) {
      const term = await locks.election(name).campaign();
      freeze();
      const said = term.proclaim("late");
      lapse();
      await said;
    },
  },
  "lease.extend()": {
    keyOf: (name) => keys.of(name).lock,
    take: takeLock,
    async run(locks, name, freeze, lapse) {
      const lease = await locks.lock(name).lock();
      freeze();
      const extended = lease.extend(20_000);
      lapse();
      await extended;
    },
  },
  "lease.wanted": {
    keyOf: (name) => keys.of(name).lock,
    take: takeLock,
    async run(locks, name, freeze, lapse) {
      const lease = await locks.lock(name).lock();
      const lost = new Promise((_, reject) => locks.on("lost", ({ error }) => reject(error)));
      freeze();
      expect(lease.wanted.aborted).toBe(false);
      lapse();
      await lost;
    },
  },
  "a body that has borrowed the lock, and wants its end confirmed": {
    keyOf: (name) => keys.of(name).lock,
    take: takeLock,
    run: (locks, name, freeze, lapse) =>
      locks.scope(async () => {
        await locks.lock(name).lock();
        freeze();
        const ended = locks.lock(name).withLock({ confirm: true }, () => {});
        lapse();
        await ended;
      }),
  },
  "a further entry into Redisson's lock": {
    keyOf: (name) => name,
    take: (locks, name) => redissonLock(locks, name).lock(),
    run: (locks, name, freeze, lapse) =>
      locks.scope(async () => {
        const lock = redissonLock(locks, name);
        await lock.lock();
        freeze();
        const entered = lock.lock();
        lapse();
        await entered;
      }),
  },
};

it.each(
  Object.entries(forms).flatMap(([name, form]) => [
    [name, "gone", form] as const,
    [name, "taken", form] as const,
  ]),
)("%s: an answer %j after the deadline leads to a loss by expiry", async (_, answer, form) => {
  const { near, far, proxy, lock } = stage;
  const { name } = lock;
  await stage.warm(near);
  const reasons: string[] = [];
  near.locks.on("lost", ({ error }) => reasons.push(error.reason));
  let lapsed: Promise<unknown> = Promise.resolve();
  const lapse = (): void => {
    const { now } = Date;
    lapsed = (async () => {
      await far.redis.del(form.keyOf(name));
      if (answer === "taken") await form.take(far.locks, name);
      const clock = vi.spyOn(Date, "now").mockImplementation(() => now() + HOUR);
      proxy.thaw();
      await until(() => reasons.length > 0).finally(() => clock.mockRestore());
    })();
  };
  const failure = form.run(near.locks, name, () => proxy.freeze("commands"), lapse);
  await expect(failure).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  await lapsed;
  expect(reasons).toEqual(["expired"]);
});
