import { afterAll, expect, it } from "vitest";
import { redissonFencedLock } from "../../src/redisson.ts";
import { spinLock } from "../../src/spin.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { QuorumStage } from "../support/quorum-stage.ts";

// The process is paused for longer than a lease. On the first line that runs after that, each
// getter says that the lease is lost, also if it was read before: no timer has run yet.

const parties = new Parties();
afterAll(parties.close);
const quorum = new QuorumStage(3);

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

/** Blocks this process's only thread, as a long computation does. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Each acquires something, and calls `use` while it is held. */
const forms: Record<string, (locks: Party["locks"], name: string, use: Use) => Promise<unknown>> = {
  "a lock": async (locks, name, use) => use(await locks.lock(name).lock({ lease })),
  "a lock in a body": (locks, name, use) => locks.lock(name).withLock({ lease }, use),
  "a lock in a scope": (locks, name, use) =>
    locks.scope(async () => use(await locks.lock(name).lock({ lease }))),
  "a lock that was entered twice": (locks, name, use) =>
    locks.scope(async () => {
      await locks.lock(name).lock({ lease });
      use(await locks.lock(name).lock());
    }),
  "a read lock": async (locks, name, use) => use(await locks.readWriteLock(name).read.lock({ lease })),
  "a write lock": async (locks, name, use) => use(await locks.readWriteLock(name).write.lock({ lease })),
  "a permit": async (locks, name, use) => use(await locks.semaphore(name, { permits: 2 }).acquire({ lease })),
  "a spin lock": async (locks, name, use) => use(await spinLock(locks, name).lock({ lease })),
  "a fenced lock of Redisson": async (locks, name, use) =>
    use(await redissonFencedLock(locks, name).lock({ lease })),
  "several locks": async (locks, name, use) =>
    use(await locks.multiLock([locks.lock(name), locks.lock(`${name}2`)]).lock({ lease })),
  "a term": async (locks, name, use) => use(await locks.election(name, { lease }).campaign()),
  "a term with a signal": (locks, name, use) => {
    const stopping = new AbortController();
    return locks.election(name, { lease }).runAsLeader({ signal: stopping.signal }, (term) => {
      try {
        use(term);
      } finally {
        stopping.abort();
      }
    });
  },
  "a turn": (locks, name, use) => locks.runOnce(name, { every: 60_000, lease }, use),
};

/** The lines after the pause. */
function pauses(held: Held): void {
  const { signal } = held;
  expect([signal.aborted, held.held]).toEqual([false, true]);
  block(LEASE + 50);
  // Taken out of the lease before the pause, and not read through it since: late.
  expect(signal.aborted).toBe(false);
  expect(() => held.signal.throwIfAborted()).toThrow(/ran out/);
  expect([signal.aborted, held.signal, held.held, held.remaining]).toEqual([true, signal, false, 0]);
  expect(() => held.assertHeld()).toThrow(signal.reason);
}

it.each(Object.entries(forms))("%s says that it is lost on the first line after a pause", async (_, run) => {
  const { locks } = await parties.join();
  let isUsed = false;
  const use = (held: Held): void => {
    pauses(held);
    isUsed = true;
  };
  await run(locks, freshName(), use).catch((error: { code?: string }) => {
    if (error.code !== "LOCK_LOST") throw error;
  });
  expect(isUsed).toBe(true);
});

it("a quorum's lock says that it is lost on the first line after a pause", async () => {
  const { locks } = await quorum.join();
  pauses(await locks.lock(quorum.name).lock({ lease }));
});
