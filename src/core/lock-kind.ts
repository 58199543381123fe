import type { EventKind } from "../api/events.ts";
import type { Inspected } from "../api/lock.ts";
import type { Callback } from "../redis/call.ts";
import type { GrantProtocol } from "../redis/keys.ts";
import type { AttemptAnswer, HolderFlag, ReleaseAnswer, RenewAnswer, YieldAnswer } from "../redis/replies.ts";
import type { Hold } from "./lease/hold.ts";
import type { Named, Renewer } from "./lease/renewer.ts";
import type { Terms } from "./lease/terms.ts";

export type { Callback } from "../redis/call.ts";

// The core's view of a lock kind: a few commands, and how its callers wake. The kinds need not solve
// the races of waiting, which the core solves once for all of them; the core needs no details of
// protocols.

/** How one attempt is made. */
export interface AttemptOptions {
  /** The hold that is to own the lock. */
  readonly hold: Hold;
  /**
   * "try" once, "queue" if it is held, re-check "again" from the queue, "yield" a hold and queue
   * after it, or ask once more by a hold that has a "grant".
   */
  readonly mode: "try" | "queue" | "again" | "yield" | "grant";
  /** The caller, whose terms say how many permits of a semaphore it wants. */
  readonly head?: { readonly terms: Terms };
  /** The lease wanted, in ms. */
  readonly lease: number;
  /** How long a queue entry may stay without a re-check, in ms. */
  readonly entryTtl: number;
  /** How many local hand-offs the hold allows: its entry reserves a token for each. */
  readonly passes: number;
  /** The token of the first run that one of its callers has waited for. 0: none, or it is a lock. */
  readonly seen?: number;
  /** For how many of them tokens are reserved, if the hold owns the lock by this command's answer. */
  readonly reserves: number;
  /**
   * For a try of a multi-lock: does nothing unless this hold owns its lock, which is on the same
   * server.
   */
  readonly after: Hold | null;
  /**
   * The digit that the lock gets if it is ours at once. A hold that is granted by message is not
   * notified before it is renewed.
   */
  readonly flag: HolderFlag;
  /**
   * Of a try that asks an idle holder to release; the holder's answer names it. Queues only if the
   * holder may be idle. Null: no holder is asked.
   */
  readonly nonce: string | null;
  /** For such a try: the token of the only holder to ask. Left out: any holder. */
  readonly meant?: number | null;
  /**
   * The channel that receives grants, or will: a client may queue before that. Null while nothing
   * is subscribed.
   */
  readonly channel: Channel | null;
  /** For permits: the number to ask for. Null: the number that `head` wants. */
  readonly run: Run | null;
}

/** An attempt, and who receives its outcome. */
export type Ask = AttemptOptions & Callback<AttemptAnswer>;
export type YieldAsk = AttemptOptions & Callback<YieldAnswer>;

/** A request that more readers may enter a hold, for that many ms. */
export interface JoinAsk extends Callback<AttemptAnswer> {
  readonly hold: Hold;
  readonly lease: number;
}

/** The permits to ask for, for several callers of one process. */
export interface Run {
  /**
   * At least `units`, which the first caller wants, and at most `upTo`: the sum for all callers
   * that one hold may serve.
   */
  readonly units: number;
  readonly upTo: number;
  /** How many permits there are by the caller's code; null: it does not say. */
  readonly permits: number | null;
  /** How many callers: a token is reserved for each. */
  readonly callers: number;
}

/** `counted`: is the number of its receivers meaningful? */
interface Channel {
  readonly name: string;
  readonly isHeard: boolean;
  readonly counted: boolean;
}

/**
 * How callers of a kind wake. By a grant: Redis keeps a queue and makes the next waiter the owner;
 * `solitary`: every waiter has its own entry, so that the order holds across all processes. By a
 * message on a channel, which only says that the lock may be free. By time: there are no messages,
 * and `pause` is how many ms to sleep before the n-th further try.
 */
export type Wake =
  | { readonly by: "grant"; readonly solitary: boolean }
  | { readonly by: "message"; readonly channel: (name: string) => string }
  | { readonly by: "time"; readonly pause: (tries: number) => number };

/** The same for a promise. */
export function tell<Answer>(outcome: Promise<Answer>, callback: Callback<Answer>): void {
  outcome.then(
    (answer) => callback.answered(answer),
    (error: unknown) => callback.failed(error),
  );
}

/**
 * A lock kind defines how to try and how to withdraw. It never loops, sleeps or subscribes: the
 * core does, the same way for every kind. Each method is one command; a rejection means that its
 * outcome is unknown.
 */
export interface LockKind extends Renewer, Admin {
  /** The method or function that makes it. */
  readonly label:
    | "lock"
    | "fairLock"
    | "redissonLock"
    | "redissonFencedLock"
    | "spinLock"
    | "quorumLock"
    | "readLock"
    | "writeLock"
    | "semaphore"
    | "election"
    | "remember";
  /** Its name in events. */
  readonly eventKind: EventKind;
  /** Two kinds with the same protocol are one lock to a scope when name and protocol agree. */
  readonly protocol: "redisson" | "redisson-fenced" | "spin" | "quorum" | GrantProtocol;
  readonly wake: Wake;
  /** Local hand-offs before the lock must go to Redis, unless a lock sets its own number. */
  readonly localHandoffs: number;
  /** The same for callers whose lock may stay cached. Left out: the same number. */
  readonly lingeringHandoffs?: number;
  /**
   * For how many of them Redis reserves tokens at most, if the holder's own token is not the server's
   * time: the clock of tokens is ahead of it then. Left out: for all.
   */
  readonly tokensAhead?: number;
  /**
   * Does a hold that was granted, or found at a re-check, ask once more before a caller has it? Do
   * callers of this process wait for the answer to a release before they ask? Left out: no.
   */
  readonly asksTwice?: boolean;
  /**
   * Can a process keep a lock across turns of the event loop? Then its renewals say whether another
   * caller waits.
   */
  readonly hasStays: boolean;
  attempt(ask: Ask): void;
  /** Removes a hold from queue and lock; safe at any time, any number of times. */
  withdraw(hold: Leavable): Promise<unknown>;
  release(hold: Hold, callback: Callback<ReleaseAnswer>): void;
  /** Releases and queues again in one command. Left out: the kind has no queue. */
  yield?(old: Hold, ask: YieldAsk): void;
  /**
   * Raises the TTL of a lock that is ours, by one command; if replicas must have it, resolves when
   * they do. Rejects with NotReplicatedError when too few have. `flag`: the digit that the lock
   * gets; left out: unchanged.
   */
  confirm(hold: Named, ttl: number, timeout: number, flag?: HolderFlag): Promise<RenewAnswer>;
  /**
   * Ends idle holds, up to `batch` of one server in one command. `isFirst`: no batch was sent just
   * before. RACE: a process that is ending reads no answer, so it would not learn that the server
   * does not know the script. So the first batch sends the script's text, and only the first: the
   * connection accepts only a limited amount at once. Left out: the kind keeps no idle holds.
   */
  readonly releaseAll?: (holds: readonly Hold[], isFirst: boolean) => Promise<ReleaseAnswer[]>;
  /** Answers a recall with this nonce, to the client that asked. Left out: the kind has no recalls. */
  answer?(name: string, nonce: string, is: "busy" | "idle"): void;
  /**
   * True: a caller gets the lock only after `confirm`, because that is what replicas acknowledge.
   */
  readonly isConfirmed: boolean;
  /** Tells Redis how often the lock was entered. Left out: Redis does not count. */
  readonly recount?: (hold: Hold, count: number) => Promise<RenewAnswer["is"]>;
  /**
   * Locks of one protocol with the same answer are always on one server, so an attempt at one of
   * them can check another. Left out: this kind has no such locks.
   */
  serverGroup?(name: string): string;
  /**
   * Which callers of one process may be inside together: one at a time; all readers, by one hold;
   * or up to as many as a hold has units.
   */
  readonly policy: "exclusive" | "shared" | "pooled";
  /**
   * Leaves a hold `stays` units; 0: it ends. Holds of several callers end by this, never by `release`.
   * Left out: no caller shares its holds.
   */
  shrink?(hold: Hold, stays: number, callback: Callback<ReleaseAnswer>): void;
  /**
   * For a read-write lock: which of the two it is, and its relation to the other. Left out: its
   * holder is alone.
   */
  readonly mode?: "read" | "write";
  readonly sharing?: Sharing;
  /** Do its leases have fencing tokens? */
  readonly hasTokens: boolean;
}

/** What inspections, tools and warnings need of a lock. No acquisition depends on it. */
interface Admin {
  /** `nonce`: asks a possibly idle holder whether it is in use; left out: no holder is asked. */
  inspect(name: string, nonce?: string): Promise<Inspected>;
  /** The same without waiters. */
  holder(name: string): Promise<Inspected>;
  /** How inspections name a hold, with its random bits. */
  shownAs(hold: Hold): string;
  /**
   * How many units would be free if only these holds of this process held any. A caller that wants
   * more waits without success while they stay. Left out: there is one unit, with one holder at a
   * time.
   */
  unitsFreeWithout?(name: string, holds: readonly Hold[]): Promise<number>;
  /**
   * `label`: for the holder, if the protocol can report it. Resolves with how many holds were
   * ended; 0: the meant holder does not hold it.
   */
  forceRelease(name: string, label: string | null, meant: Meant): Promise<number>;
}

/** Which holder a force-release means. Both null: any holder, or all of them where several hold. */
export interface Meant {
  /** Its id, as inspections show it. */
  readonly holder: string | null;
  readonly token: number | null;
}

/** How the readers and writers of one lock relate. */
export interface Sharing {
  /** The kind whose callers share a hold, and those whose callers wait for all readers. */
  readonly readers: LockKind;
  readonly writers: readonly LockKind[];
  /**
   * Asks whether more readers may enter this hold, and raises its end to `lease` ms from now, both
   * only if no caller waits. "gone": the hold does not exist. It never makes a hold, and takes no
   * place.
   */
  join(ask: JoinAsk): void;
  /**
   * Answers a recall with this nonce, to the writer's client that asked: is a reader of this
   * process inside?
   */
  answer(name: string, nonce: string, is: "busy" | "idle"): void;
  /**
   * How many holds readers have, and how many of these may be idle. `nonce`: asks those whether
   * they are in use; left out: none is asked.
   */
  readersOf(name: string, nonce?: string): Promise<{ readonly held: number; readonly kept: number }>;
}

/** Withdraws a hold, whatever has happened to it; safe at any time, any number of times. */
export interface Withdrawer {
  withdraw(hold: Leavable): Promise<unknown>;
}

/** A hold that must go, with its queue entry if it may have one. */
export interface Leavable {
  readonly id: string;
  readonly name: string;
  readonly label?: string;
  readonly entry?: string;
}

/** A lock of a kind. */
export interface Member {
  readonly kind: LockKind;
  readonly name: string;
  /**
   * How many local hand-offs may come before a caller of this one gets it. Left out: its kind's
   * number.
   */
  readonly passes?: number | undefined;
}

/**
 * One of several tries that a multi-lock sends together, in order: Redis does nothing unless the
 * lock of the previous try is owned by that try's hold. Otherwise it ends with BLOCKED.
 */
export interface BatchedTry {
  readonly dependsOn: BatchedTry | null;
  /**
   * The hold that it last asked with. Null: it has none, because another caller's command also
   * answers for it.
   */
  hold: Hold | null;
  /** The holder that it met may be idle. */
  mayBeIdle: boolean;
  /**
   * ms that the caller of the multi-lock is willing to wait, and so for the answer; this try does
   * not wait.
   */
  readonly wait: number;
}

/**
 * Why a try of a multi-lock ends: the previous lock is not held. This error never leaves the
 * package.
 */
export const BLOCKED = new Error("the lock before it is not held");
