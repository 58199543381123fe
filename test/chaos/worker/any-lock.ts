import type {
  Election,
  Lease,
  LockClient,
  LockOptions,
  MultiLease,
  PermitLease,
  Remembered,
  ResultRun,
  Term,
  UnfencedLease,
} from "../../../src/index.ts";
import { leaseLike } from "../../support/lease-like.ts";
import { lockOf } from "../../support/permit.ts";
import { callOf, turnOf } from "../../support/turn.ts";
import { PERMITS } from "../arenas/arena.ts";
import { TERM_LEASE } from "../settings.ts";
import type { Wish } from "./wish.ts";

/** What a caller has: what all of it has in common. */
export interface AnyLease {
  /**
   * Of a lock, or of one of several; of permits the number that Redis has for their turn, which
   * grows as tokens do. 0: there is none.
   */
  token(lock: string): number;
  /** By what the events of the client call it. */
  told(lock: string): string;
  readonly held: boolean;
  readonly signal: AbortSignal;
  /** ms; 0 where it does not tell. */
  readonly remaining: number;
  extend(ms: number): Promise<unknown>;
  unlock(): Promise<void>;
}

/** The result of a run. `value`: what its body returned. */
type Result = Pick<Remembered<string>, "value" | "ran" | "token" | "at">;

/** Whatever a caller wants, asked for as a lock. */
export interface AnyLock {
  lock(options: LockOptions): Promise<AnyLease>;
  tryLock(options: LockOptions): Promise<AnyLease | null>;
  /** `body`: what it returns, the callers of its run get. */
  withLock(options: LockOptions, body: (lease: AnyLease) => Promise<string>): Promise<Result | undefined>;
}

/** A lock, a multi-lock, permits, a term, or a run. */
export function anyLock(locks: LockClient, { kind, lock, also, particular }: Wish): AnyLock {
  switch (kind) {
    case "multiLock":
      return ofLock(locks.multiLock([lock, ...also]));
    case "quorumLock":
      return ofLock(locks.lock(lock));
    case "readLock":
      return ofLock(locks.readWriteLock(lock, { fair: particular.fair ?? false }).read);
    case "writeLock":
      return ofLock(locks.readWriteLock(lock, { fair: particular.fair ?? false }).write);
    case "permit":
      return permits(locks, lock, particular.units ?? 1);
    case "election":
      return term(locks, lock);
    case "once":
      return run(locks, lock, particular);
    case "remember":
      return remember(locks, lock, particular);
    default:
      return ofLock(lockOf(locks, kind, lock));
  }
}

type OneLease = Lease | UnfencedLease | PermitLease | MultiLease;

interface LockLike {
  lock(options: LockOptions): Promise<OneLease>;
  tryLock(options: LockOptions): Promise<OneLease | null>;
  withLock(options: LockOptions, body: (lease: OneLease) => Promise<unknown>): Promise<unknown>;
}

const ofLock = (one: LockLike): AnyLock => ({
  lock: async (options) => asAny(await one.lock(options)),
  async tryLock(options) {
    const lease = await one.tryLock(options);
    return lease && asAny(lease);
  },
  async withLock(options, body) {
    await one.withLock(options, (lease) => body(asAny(lease)));
    return undefined;
  },
});

const permits = (locks: LockClient, name: string, units: number): AnyLock => {
  const slots = locks.semaphore(name, { permits: PERMITS });
  return ofLock({
    lock: (options) => slots.acquire(units, options),
    tryLock: (options) => slots.tryAcquire(units, options),
    withLock: (options, body) => slots.withPermits(units, options, body),
  });
};

/** Events name a lease by its token; one without by its call. */
export const toldAs = (lock: string, token: number | null, call: number): string =>
  token === null ? `${lock} by call ${call}` : `${lock} ${token}`;

function asAny(lease: OneLease): AnyLease {
  const fence = (lock: string): number | null => {
    if ("tokens" in lease) return lease.tokens.get(lock) ?? null;
    return "token" in lease ? lease.token : null;
  };
  return leaseLike(lease, {
    token: (lock: string) => fence(lock) ?? ("names" in lease ? 0 : turnOf(lease)),
    told: (lock: string) => toldAs(lock, fence(lock), "names" in lease ? 0 : callOf(lease)),
    extend: (ms: number) => lease.extend(ms),
    unlock: () => ("release" in lease ? lease.release() : lease.unlock()),
  });
}

const electionOf = (locks: LockClient, name: string): Election => locks.election(name, { lease: TERM_LEASE });

/**
 * Leads, and campaigns again behind each loss, until a body has ended in its term. `body`: `isLost`
 * asks whether its term is over.
 */
export const runAsLeader = (
  locks: LockClient,
  name: string,
  body: (lease: AnyLease, isLost: () => boolean) => Promise<void>,
  signal: AbortSignal | undefined,
): Promise<unknown> =>
  electionOf(locks, name).runAsLeader(
    {
      value: FIRST,
      signal,
    },
    (one) => body(ofTerm(one), () => one.lost !== null),
  );

function term(locks: LockClient, name: string): AnyLock {
  const election = electionOf(locks, name);
  const lock = async ({ wait, signal }: LockOptions): Promise<AnyLease> =>
    ofTerm(await election.campaign({ value: FIRST, wait, signal }));
  return {
    lock,
    tryLock: (options) => lock({ wait: 0, ...options }),
    async withLock(options, body) {
      const lease = await lock(options);
      try {
        await body(lease);
      } finally {
        await lease.unlock();
      }
      return undefined;
    },
  };
}

/** What is proclaimed is the number of the proclamation in its term. */
const FIRST = "1";

const ofTerm = (one: Term): AnyLease => ({
  token: () => one.token,
  told: (lock) => toldAs(lock, one.token, 0),
  get held() {
    return one.held;
  },
  get signal() {
    return one.signal;
  },
  remaining: 0,
  extend: () => one.proclaim(`${Number(one.value) + 1}`),
  unlock: () => one.resign(),
});

/** As calls tell that did not get what they wanted. */
class Busy extends Error {
  override readonly name = "LockTimeoutError";
}

function run(
  locks: LockClient,
  name: string,
  { every = 0, aligned, onCrash, throws }: Wish["particular"],
): AnyLock {
  return {
    lock: never,
    tryLock: never,
    async withLock({ lease, signal }, body) {
      const { ran } = await locks.runOnce(name, { every, aligned, onCrash, lease, signal }, async (turn) => {
        await body(ofRun(turn, turn.begin));
        if (throws) throw new Error("the body throws");
      });
      if (!ran) throw new Busy("it ran in this interval");
      return undefined;
    },
  };
}

function remember(
  locks: LockClient,
  name: string,
  { keep = 0, fingerprint, throws }: Wish["particular"],
): AnyLock {
  return {
    lock: never,
    tryLock: never,
    withLock: ({ wait, lease, signal }, body) =>
      locks.remember(name, { keep, wait, fingerprint, lease, signal }, async (run) => {
        const value = await body(ofRun(run, run.token));
        if (throws) throw new Error("the body throws");
        return value;
      }),
  };
}

const never = (): never => {
  throw new TypeError("a run has a body");
};

const ofRun = (
  run: Pick<ResultRun, "held" | "signal"> & { remaining?: number },
  token: number,
): AnyLease => ({
  token: () => token,
  told: (lock) => toldAs(lock, token, 0),
  get held() {
    return run.held;
  },
  get signal() {
    return run.signal;
  },
  get remaining() {
    return run.remaining ?? 0;
  },
  extend: never,
  unlock: never,
});
