import type { LockClientOptions } from "../../src/api/options.ts";
import type { EventKind } from "../../src/index.ts";
import type { CountedKeys, Keys } from "../../src/redis/keys.ts";
import type { Exemption } from "../support/exemption.ts";
import type { Maker } from "../support/permit.ts";
import { LINGERING } from "../support/stays.ts";

/** The names in Redis of what a kind stores for one lock. */
interface Stored {
  /** The key that exists while the lock is held. */
  readonly lock: string;
  /** The key of its queue. Left out: Redis keeps none, and a release tells all waiters to try again. */
  readonly queue?: string;
  /** The lock's own channel, which its waiters subscribe to. Left out: there is none. */
  readonly channel?: string;
}

/** Where lock kinds differ by design. */
export interface Traits {
  /** The client's method that makes one; the kind's name when left out. */
  readonly method?: Maker;
  /** How events call it. */
  readonly eventKind: EventKind;
  /** Leases carry fencing tokens. */
  readonly tokens: boolean;
  /** What it stores in Redis for the lock of this name. */
  readonly stored: (name: string, keys: Keys) => Stored;
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

const handOff = (name: string, keys: Keys): Stored => keys.of(name);
const permits = (name: string, keys: Keys): Stored => ofCounted(keys.ofCounted("semaphore", name));
const readWrite = (name: string, keys: Keys): Stored => ofCounted(keys.ofCounted("rw", name));
const ofCounted = ({ hash, queue }: CountedKeys): Stored => ({ lock: hash, queue });
const redisson = (name: string, keys: Keys): Stored => ({ lock: name, channel: keys.redissonChannel(name) });
const spin = (name: string): Stored => ({ lock: name });

function quorum(name: string, keys: Keys): Stored {
  const { lock, free } = keys.ofQuorum(name);
  return { lock, channel: free };
}

/** Every lock kind that keeps the contract. */
export const KINDS: Readonly<Record<Kind, Traits>> = {
  lock: { eventKind: "lock", tokens: true, stored: handOff },
  fairLock: { eventKind: "fair", tokens: true, stored: handOff },
  redissonLock: { eventKind: "redisson", tokens: false, stored: redisson },
  redissonFencedLock: { eventKind: "redissonFenced", tokens: true, stored: redisson, counter: true },
  spinLock: { eventKind: "spin", tokens: false, stored: spin },
  /** `lock` of a client that caches it while no caller is inside. */
  lingeringLock: { method: "lock", eventKind: "lock", tokens: true, stored: handOff, client: LINGERING },
  /** One permit of a semaphore that has one. */
  permit: { eventKind: "semaphore", tokens: false, stored: permits },
  /** Its second client writes: see `Subject.on`. */
  readLock: { eventKind: "read", tokens: true, stored: readWrite },
  writeLock: { eventKind: "write", tokens: true, stored: readWrite },
  quorumLock: { method: "lock", eventKind: "quorum", tokens: true, stored: quorum, isQuorum: true },
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

/** The tests that a kind does not keep by design, and why. */
const EXEMPTIONS: Readonly<Partial<Record<Kind, readonly Exemption[]>>> = {
  permit: [
    {
      theme: /^(borrowing|scopes|side by side in one scope|drain loops|reentrant: false.*|after a scope)$/,
      tests: [/./],
      why: NOT_REENTERED,
    },
    {
      tests: [
        /hold the body's lock by/,
        /two scopes that share/,
        /borrower/,
        /nested acquisition/,
        /^resolves with the body's result$/,
        /drive gauges/,
      ],
      why: NOT_REENTERED,
    },
  ],
  readLock: [
    {
      tests: [
        /excludes (two clients|two scopes|callers|processes|the siblings|the children)/,
        /own client holds it/,
        /\(mine\)/,
        /its turn no longer/,
        /fifty borrowers/,
        /strangers/,
        /a body beside a lease/,
        /a body that cannot borrow/,
        /same client/,
        /still wait for their turn/,
        /callers of this client/,
        /drive gauges/,
        /throwing listener stops/,
        /waits for its own client/,
        /serves them in it/,
      ],
      why: TOGETHER,
    },
    { theme: /^reentrant: false/, tests: [/^(?!a body and a lease)/], why: TOGETHER },
    { theme: /^tokens$/, tests: [/^(?!are the same)/], why: TOGETHER },
  ],
};

export const exemptionsOf = (kind: Kind): readonly Exemption[] => EXEMPTIONS[kind] ?? [];
