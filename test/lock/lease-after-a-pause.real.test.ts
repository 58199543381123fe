// On a real Redis; in virtual time: test/world/directed/pauses.test.ts.

import { afterAll, expect, it } from "vitest";
import { redissonFencedLock } from "../../src/redisson.ts";
import { spinLock } from "../../src/spin.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { type Held, LEASE, pauses } from "./paused-lease.ts";

// The process is paused for longer than a lease. On the first line that runs after that, each
// getter says that the lease is lost, also if it was read before: no timer has run yet.

const parties = new Parties();
afterAll(parties.close);

const lease = LEASE;

type Use = (held: Held) => void;

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
