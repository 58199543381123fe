import type { LockClientOptions } from "../../src/api/options.ts";
import type { EventKind } from "../../src/index.ts";
import type { Maker } from "../support/permit.ts";
import { LINGERING } from "../support/stays.ts";

/** Where lock kinds differ by design. */
export interface Traits {
  /** The client's method that makes one; the kind's name when left out. */
  readonly method?: Maker;
  /** How events call it. */
  readonly eventKind: EventKind;
  /** Leases carry fencing tokens. */
  readonly tokens: boolean;
  /** Redis keeps a queue and hands the lock on; without one it tells everybody to try again. */
  readonly queues: boolean;
  /** Waiters hear messages, so that Redis sees them listen. Left out: true. */
  readonly messages?: boolean;
  /**
   * The tokens are a plain counter in Redis: where the data is lost they start again. Left out:
   * they follow its clock.
   */
  readonly counter?: boolean;
  /** Several masters hold it together. */
  readonly isQuorum?: boolean;
  /** What its clients are made with. */
  readonly client?: LockClientOptions;
}

export type Kind = Maker | "quorumLock" | "lingeringLock";

/** Every lock kind that keeps the contract. */
export const KINDS: Readonly<Record<Kind, Traits>> = {
  lock: { eventKind: "lock", tokens: true, queues: true },
  fairLock: { eventKind: "fair", tokens: true, queues: true },
  redissonLock: { eventKind: "redisson", tokens: false, queues: false },
  redissonFencedLock: { eventKind: "redissonFenced", tokens: true, queues: false, counter: true },
  spinLock: { eventKind: "spin", tokens: false, queues: false, messages: false },
  /** `lock` of a client that keeps it when nobody is inside. */
  lingeringLock: { method: "lock", eventKind: "lock", tokens: true, queues: true, client: LINGERING },
  /** One permit of a semaphore that has one. */
  permit: { eventKind: "semaphore", tokens: false, queues: true },
  /** Its second client writes: see `Subject.on`. */
  readLock: { eventKind: "read", tokens: true, queues: true },
  writeLock: { eventKind: "write", tokens: true, queues: true },
  quorumLock: { method: "lock", eventKind: "quorum", tokens: true, queues: false, isQuorum: true },
};

/** Where a kind does not run, and why. `kind` and `topology` are regular expressions for whole names. */
export const EXCUSES: readonly { readonly kind: RegExp; readonly topology: RegExp; readonly why: string }[] =
  [
    {
      kind: /^redissonFencedLock$/,
      topology: /key prefix$/,
      why: "refused there: Java would not find the token counter",
    },
    { kind: /^quorumLock$/, topology: /^(?!\d masters)/, why: "a quorum is made of independent servers" },
    {
      kind: /^(?!quorumLock$)/,
      topology: /^\d masters.*/,
      why: "a client of several masters has no other kind",
    },
    {
      kind: /^multiLock$/,
      topology: /^(?!\d masters)/,
      why: "no Lock: it has another surface, and tests of its own on one server and in Cluster",
    },
  ];

export const excuseOf = (kind: string, topology: string): string | undefined =>
  EXCUSES.find((excuse) => excuse.kind.test(kind) && excuse.topology.test(topology))?.why;

const NOT_REENTERED = "permits are not re-entered, nor lent to nested bodies";
const TOGETHER =
  "readers are inside together, with one token: callers of one client, or of several that read";

/**
 * Which tests a kind does not keep by design, and why. They are regular expressions for names of
 * themes and of tests.
 */
const OTHERWISE: readonly {
  readonly kind: Kind;
  readonly theme: RegExp;
  readonly test: RegExp;
  readonly why: string;
}[] = [
  {
    kind: "permit",
    theme: /^(borrowing|scopes|side by side in one scope|drain loops|reentrant: false.*|after a scope)$/,
    test: /./,
    why: NOT_REENTERED,
  },
  {
    kind: "readLock",
    theme: /./,
    test: /excludes (two clients|two scopes|callers|processes|the siblings|the children)|own client holds it|\(mine\)|its turn no longer|fifty borrowers|strangers|excludes a nested|a body beside a lease|a body that cannot borrow|same client|still wait for their turn|callers of this client|makes gauges|throwing listener stops|waits for its own client|serves them in it/,
    why: TOGETHER,
  },
  { kind: "readLock", theme: /^reentrant: false/, test: /^(?!a body and a lease)/, why: TOGETHER },
  { kind: "readLock", theme: /^tokens$/, test: /^(?!are the same)/, why: TOGETHER },
  {
    kind: "permit",
    theme: /./,
    test: /keep the body's lock by|two scopes that share|all who share a lease|borrower|nested acquisition|what the body returned$|makes gauges/,
    why: NOT_REENTERED,
  },
];

export const otherwise = (kind: Kind, theme: string, test: string): string | undefined =>
  OTHERWISE.find((one) => one.kind === kind && one.theme.test(theme) && one.test.test(test))?.why;
