import { describe, expect, it, onTestFinished } from "vitest";
import {
  isLockLost,
  type Lease,
  type LockClient,
  type LockOptions,
  LockTimeoutError,
} from "../../src/index.ts";
import { until } from "../support/until.ts";
import { failure } from "./observe.ts";
import type { Subject } from "./subject.ts";

/** What the leases of single locks and of multi-locks have in common. */
type AnyLease = Pick<Lease, "held" | "remaining" | "signal"> & Disposable & AsyncDisposable;
type Body<T = unknown> = (lease: AnyLease) => T | PromiseLike<T>;

/** A lock of whatever kind, a multi-lock included. */
interface AnyLock {
  tryLock(wait?: number, lease?: number): Promise<AnyLease | null>;
  tryLock(options: LockOptions): Promise<AnyLease | null>;
  lock(options?: LockOptions): Promise<AnyLease>;
  withLock<T>(body: Body<T>): Promise<T>;
  withLock<T>(options: LockOptions, body: Body<T>): Promise<T>;
}

/** One lock as two processes see it. */
export interface SeenByTwo {
  readonly mine: AnyLock;
  readonly theirs: AnyLock;
  /** The client of `mine`. */
  readonly locks: LockClient;
  /** Resolves when one client waits. */
  untilWaiting(): Promise<unknown>;
}

type Times = { readonly wait?: number; readonly lease?: number };

/**
 * Takes a lock, runs the body while it is held, and resolves with what the body returned; null:
 * another caller held the lock.
 */
type Form = <T>(lock: AnyLock, times: Times, body: Body<T>) => Promise<T | null>;

/** The forms that the docs teach, with a time to wait and a lease. */
const FORMS: Readonly<Record<string, Form>> = {
  "await using, tryLock(wait, lease)": async (lock, { wait, lease }, body) => {
    await using held = await lock.tryLock(wait, lease);
    return held && (await body(held));
  },
  "await using, tryLock(options)": async (lock, options, body) => {
    await using held = await lock.tryLock(options);
    return held && (await body(held));
  },
  "await using, lock(options)": async (lock, options, body) => {
    await using held = await lock.lock(options);
    return await body(held);
  },
  "using, tryLock(wait, lease)": async (lock, { wait, lease }, body) => {
    using held = await lock.tryLock(wait, lease);
    return held && (await body(held));
  },
  "using, lock(options)": async (lock, options, body) => {
    using held = await lock.lock(options);
    return await body(held);
  },
  "withLock(options, body)": (lock, options, body) => lock.withLock(options, body),
};

/** Has neither a time to wait nor a lease. */
const BARE: Form = (lock, _, body) => lock.withLock(body);

/** For a wait that is to succeed. */
const PATIENT = 10_000;
/** A lease that is to be held for a while: longer than a busy machine stands still. */
const HELD = 2_000;

/** The forms in which a caller takes a lock do the same, but for how they say that it is busy or lost. */
export function forms(subject: Subject): void {
  formsOf(() => {
    const { name, mine, theirs } = subject.pair();
    return { mine, theirs, locks: subject.first.locks, untilWaiting: () => subject.untilWaiting(name, 1) };
  });
}

/** The same of what is no `Subject`. `pair`: a lock that no other test uses. */
export function formsOf(pair: () => SeenByTwo): void {
  describe("the forms of an acquisition", () => {
    it.each(Object.entries({ ...FORMS, "withLock(body)": BARE }))(
      "%s: has the lock in its block, and no longer",
      async (_, form) => {
        const { mine, theirs } = pair();
        const returned = await form(mine, { wait: PATIENT, lease: 20_000 }, async (lease) => {
          expect([lease.held, lease.signal.aborted, await theirs.tryLock()]).toEqual([true, false, null]);
          expect(lease.remaining).toBeGreaterThan(0);
          return "done";
        });
        expect(returned).toBe("done");
        await theirs.withLock({ wait: PATIENT }, () => {});
      },
    );

    it.each(Object.entries({ ...FORMS, "withLock(body)": BARE }))(
      "%s: waits for another client, and gets the lock",
      async (_, form) => {
        const { mine, theirs, untilWaiting } = pair();
        const waiting = await theirs.withLock(async () => {
          const waiting = form(mine, { wait: PATIENT, lease: 20_000 }, ({ held }) => held);
          await untilWaiting();
          return { waiting }; // a promise that is returned bare would be waited for in here
        });
        expect(await waiting.waiting).toBe(true);
      },
    );

    it.each(Object.entries(FORMS))("%s: does not run its block when the wait is over", async (how, form) => {
      const { mine, theirs } = pair();
      let hasRun = false;
      await theirs.withLock(async () => {
        const busy = form(mine, { wait: 60 }, () => {
          hasRun = true;
        });
        if (how.includes("tryLock")) expect(await busy).toBe(null);
        else expect(await failure(busy)).toBeInstanceOf(LockTimeoutError);
      });
      expect(hasRun).toBe(false);
    });

    it("an explicit lease turns renewal off: it ends with the hold, and its caller is notified", async () => {
      const expire = async ([how, form]: [string, Form]): Promise<void> => {
        const { mine, theirs, locks } = pair();
        const errors: unknown[] = [];
        const listener = (error: Error) => void errors.push(error);
        locks.on("error", listener);
        onTestFinished(() => void locks.off("error", listener));
        const asked = performance.now();
        const block = form(mine, { wait: PATIENT, lease: HELD }, async (lease) => {
          expect(lease.remaining).toBeLessThanOrEqual(HELD);
          await theirs.withLock({ wait: 3 * PATIENT }, () => {
            expect(performance.now() - asked).toBeGreaterThan(HELD * 0.9);
            expect(lease.held).toBe(false);
          });
          expect(lease.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
          return lease.signal.reason;
        });
        // `using` cannot wait for an answer, so it does not throw. The members of a multi-lock are
        // lost one by one.
        const isBare = how.startsWith("using");
        const loss = await (isBare ? block : failure(block));
        expect(isLockLost(loss)).toBe(true);
        if (isBare) await until(() => errors.some(isLockLost), { what: "the error event" });
      };
      await Promise.all(Object.entries(FORMS).map(expire));
    });

    it.each([[{ wait: 5 }], [{}], [undefined]])(
      "withLock(body, %j) is refused with the right order of arguments, and the body does not run",
      async (options) => {
        const { mine } = pair();
        let hasRun = false;
        const withLock = mine.withLock.bind(mine) as (...args: unknown[]) => Promise<unknown>;
        const body = () => {
          hasRun = true;
        };
        const error = await failure(withLock(body, options));
        expect(error).toBeInstanceOf(TypeError);
        expect((error as TypeError).message).toMatch(/takes the options before the function/);
        expect(hasRun).toBe(false);
      },
    );
  });
}
