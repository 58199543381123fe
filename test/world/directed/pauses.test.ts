import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { expect, test } from "vitest";
import type { LockClient } from "../../../src/index.ts";
import type { Product } from "../product.ts";
import { scene } from "./scene.ts";
import { L } from "./steps.ts";

// A process stands still for longer than a lease. On the first line that runs after that, each
// getter says that the lease is lost, also if it was read before: no timer has run yet.

/** ms */
const LEASE = 800;
const lease = LEASE;

interface Held {
  readonly signal: AbortSignal;
  readonly held: boolean;
  readonly remaining: number;
  assertHeld(): void;
}
type Use = (held: Held) => void;

/** Each acquires something, and calls `use` while it is held. */
const FORMS: Readonly<Record<string, (locks: LockClient, use: Use, product: Product) => Promise<unknown>>> = {
  "a lock": async (locks, use) => use(await locks.lock("x").lock({ lease })),
  "a fair lock": async (locks, use) => use(await locks.fairLock("x").lock({ lease })),
  "a lock in a body": (locks, use) => locks.lock("x").withLock({ lease }, use),
  "a lock in a scope": (locks, use) => locks.scope(async () => use(await locks.lock("x").lock({ lease }))),
  "a lock that was entered twice": (locks, use) =>
    locks.scope(async () => {
      await locks.lock("x").lock({ lease });
      use(await locks.lock("x").lock());
    }),
  "a read lock": async (locks, use) => use(await locks.readWriteLock("x").read.lock({ lease })),
  "a write lock": async (locks, use) => use(await locks.readWriteLock("x").write.lock({ lease })),
  "a permit": async (locks, use) => use(await locks.semaphore("x", { permits: 2 }).acquire({ lease })),
  "a spin lock": async (locks, use, { spinLock }) => use(await spinLock(locks, "x").lock({ lease })),
  "a fenced lock of Redisson": async (locks, use, { redissonFencedLock }) =>
    use(await redissonFencedLock(locks, "x").lock({ lease })),
  "several locks": async (locks, use) => use(await locks.multiLock(["x", "y"]).lock({ lease })),
  "a term": async (locks, use) => use(await locks.election("x", { lease }).campaign()),
  "a term with a signal": (locks, use) => {
    const stopping = new AbortController();
    return locks.election("x", { lease }).runAsLeader({ signal: stopping.signal }, (term) => {
      try {
        use(term);
      } finally {
        stopping.abort();
      }
    });
  },
  "a turn": (locks, use) => locks.runOnce("x", { every: 60_000, lease }, use),
};

/** Which is read first after the pause: some make the others say so. */
const GETTERS: Readonly<Record<string, Use>> = {
  held: (lease) => expect(lease.held).toBe(false),
  remaining: (lease) => expect(lease.remaining).toBe(0),
  signal: (lease) => expect(() => lease.signal.throwIfAborted()).toThrow(/ran out/),
  "assertHeld()": (lease) => expect(() => lease.assertHeld()).toThrow(/ran out/),
};

test.each(
  Object.entries(FORMS).flatMap(([form, run]) =>
    Object.entries(GETTERS).map(([getter, read]) => [form, getter, run, read] as const),
  ),
)("%s says that it is lost on the first line after a pause: %s", (_, __, run, read) =>
  scene(async (world) => {
    const [one] = world.processes(1);
    one.heard("error");
    let isUsed = false;
    const use = (held: Held): void => {
      const { signal } = held;
      expect([signal.aborted, held.held]).toEqual([false, true]);
      one.block(LEASE + 50);
      // Taken out of the lease before the pause, and not read through it since: late.
      expect(signal.aborted).toBe(false);
      read(held);
      expect([held.signal, signal.aborted, held.held, held.remaining]).toEqual([signal, true, false, 0]);
      expect(() => held.assertHeld()).toThrow(signal.reason as Error);
      isUsed = true;
    };
    await one.does(() =>
      run(one.client, use, one.member.process.product).catch((error: { code?: string }) => {
        if (error.code !== "LOCK_LOST") throw error;
      }),
    );
    expect(isUsed).toBe(true);
    await world.pass(1_000);
  })(),
);

test.each([
  ["more", L / 3 + 100, [{ client: expect.any(String), late: expect.closeTo(L / 3 + 100, -1), leases: 1 }]],
  ["less", L / 3 - 100, []],
])(
  "the channel of stalls: an event loop that was blocked for %s than a third of a lease when it was to renew",
  (_, late, expected) =>
    scene(async (world) => {
      const [one] = world.processes(1);
      const told: unknown[] = [];
      const listener = (message: unknown): void => void told.push(message);
      subscribe("holdfast:stall", listener);
      try {
        const held = await one.take("lock");
        const longer = await one.take("lock", { name: "b", lease: 2 * L });
        const renewed = one.on("renew").executed();
        // It trusts a lease for 1 % less, and so renews it earlier.
        await one.does(() => one.block(L / 3 - L / 100 + late));
        await renewed;
        await held.unlock();
        await longer.unlock();
      } finally {
        unsubscribe("holdfast:stall", listener);
      }
      expect(told).toEqual(expected);
    })(),
);
