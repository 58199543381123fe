import { describe, expect, it } from "vitest";
import {
  isLockLost,
  type Lease,
  type Lock,
  type LockClient,
  type LockOptions,
  LockUnavailableError,
  type LossReason,
  type MultiLease,
} from "../../src/index.ts";
import { until } from "../support/until.ts";
import { failure, Gate, record } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** One way in which a lease ends that its caller has not ended. */
interface Ending {
  /** For a lease that ends by itself after so many ms. */
  readonly options?: (ms: number) => LockOptions;
  /** What is told, by the kinds that hear of it at once and those that find it. */
  readonly reasons: readonly LossReason[];
  /** `theirs`: another process sees the lock so. */
  end(client: LockClient, theirs: Lock, subject: Subject): Promise<unknown>;
}

/** It is renewed after a third of it, which finds what became of the lock. */
const LEASE = 3_000;

const ENDINGS: Readonly<Record<string, Ending>> = {
  "the end of its time": { options: (lease) => ({ lease }), reasons: ["expired"], end: async () => {} },
  maxHold: { options: (maxHold) => ({ maxHold }), reasons: ["expired"], end: async () => {} },
  "close()": { reasons: ["closed"], end: (locks) => locks.close({ grace: 0 }) },
  "forceUnlock()": { reasons: ["gone", "revoked"], end: (_, theirs) => theirs.forceUnlock() },
  "the loss of its key": { reasons: ["gone"], end: (_, { name }, subject) => subject.erase(name) },
  "another holder": {
    reasons: ["taken", "gone"],
    end: async (_, theirs, subject) => {
      // Sent together: a renewal between them would find it gone.
      const [, usurper] = await Promise.all([subject.erase(theirs.name), theirs.lock({ wait: 10_000 })]);
      await usurper.unlock();
    },
  },
};

/** A caller that has a lease. `over`: of a body, what its call rejects with. */
interface Held {
  readonly lease: Lease | MultiLease;
  readonly over?: Promise<unknown>;
}

type Take = (lock: Lock, locks: LockClient, options: LockOptions) => Promise<readonly Held[]>;

/** The ways to have a lease. */
const HOLDERS: Readonly<Record<string, Take>> = {
  "lock()": async (lock, _, options) => [{ lease: await lock.lock(options) }],
  "two lock() of a scope": (lock, locks, options) =>
    inScope(locks, async () => [{ lease: await lock.lock(options) }, { lease: await lock.lock() }]),
  "withLock(), and lock() in it": (lock, _, options) =>
    new Promise((resolve, reject) => {
      const over = failure(
        lock.withLock(options, async (lease) => {
          const inner = await lock.lock();
          resolve([{ lease, over }, { lease: inner }]);
          await until(() => lease.signal.aborted, { what: "the end" });
        }),
      );
      over.then(reject); // too late, but where it ends before both have their leases
    }),
  "multiLock().lock()": async (lock, locks, options) => [
    { lease: await locks.multiLock([lock]).lock(options) },
  ],
};

/** In a scope that does not end before the test does. */
function inScope<T>(locks: LockClient, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    locks.scope(() =>
      work()
        .then(resolve, reject)
        .then(() => new Gate().passed),
    );
  });
}

/** Permits are not re-entered, and not every client has multi-locks. */
const holdersOf = ({ kind, isQuorum }: Subject): Take[] =>
  Object.entries(HOLDERS)
    .filter(([how]) => kind !== "permit" || how === "lock()")
    .filter(([how]) => !isQuorum || !how.startsWith("multi"))
    .map(([, take]) => take);

/** Whatever ends a lease, all that its caller can ask tells the same. */
export function endings(subject: Subject): void {
  async function tells(ending: Ending, take: Take, ms = 300): Promise<void> {
    const { end, options, reasons } = ending;
    const party = await subject.join({ leaseTime: LEASE });
    const { locks } = party;
    const told = record(locks);
    const { name, theirs } = subject.pair();
    const all = await take(subject.of(party, name), locks, options?.(ms) ?? {}).catch((error) => {
      // This machine stood still for longer than the first lease lasts, before or after its caller
      // could have it.
      const isTooShort = isLockLost(error) || error instanceof LockUnavailableError;
      if (options && isTooShort && ms < 10_000) return null;
      throw error;
    });
    if (!all) return tells(ending, take, 2 * ms);
    const signals = all.map(({ lease }) => lease.signal);
    await end(locks, theirs, subject);
    await until(() => signals.every(({ aborted }) => aborted), { what: "all signals to abort" });
    const loss = signals[0]?.reason;
    expect(reasons).toContain(loss.reason);
    expect(loss).toMatchObject({ code: "LOCK_LOST", lockName: name });
    for (const [i, { lease, over }] of all.entries()) {
      expect([signals[i]?.reason, lease.held, lease.remaining]).toEqual([loss, false, 0]);
      // The first of all ways out throws it, and the later ones of the same hold only if they are
      // withLock().
      const out = over ?? (i === 0 ? failure(lease.unlock()) : lease.unlock().then(() => loss));
      expect(await out).toBe(loss);
      await lease.unlock();
      expect(() => lease.assertHeld()).toThrow(loss);
      expect(await failure(lease.extend(1_000))).toBe(loss);
    }
    expect(told.lost.map(({ error }) => error)).toEqual([loss]);
    expect(told.release).toEqual([]);
  }

  describe.concurrent("a lease that is ended by", () => {
    for (const [way, ending] of Object.entries(ENDINGS))
      it(`${way}: its signal, \`held\`, unlock(), \`lost\` and withLock() agree`, async () => {
        await Promise.all(holdersOf(subject).map((take) => tells(ending, take)));
      });
  });
}
