import type { EventKind } from "../api/events.ts";
import type { Inspected } from "../api/lock.ts";
import type { Callback } from "../redis/call.ts";
import type { GrantProtocol } from "../redis/keys.ts";
import type { AttemptAnswer, HolderFlag, ReleaseAnswer, RenewAnswer, YieldAnswer } from "../redis/replies.ts";
import type { Hold } from "./lease/hold.ts";
import type { Renewer } from "./lease/renewer.ts";
import type { Terms } from "./lease/terms.ts";

export type { Callback } from "../redis/call.ts";

// What the waiting engine knows of a lock kind: a few commands, and how its callers wake. Protects
// the kinds from the races of waiting, which the engine solves once for all of them, and the engine
// from every protocol's details.

/** How one attempt is made. */
export interface AttemptOptions {
  /** "try" once, "queue" when it is held, look "again" from the queue, "yield" a hold and queue behind. */
  readonly mode: "try" | "queue" | "again" | "yield";
  /** The caller, which says how many permits of a semaphore it wants. */
  readonly head?: { readonly terms: Terms };
  /** The lease wanted, in ms. */
  readonly lease: number;
  /** How long a queue entry may stand without a re-check, in ms. */
  readonly entryTtl: number;
  /** How often the hold may be passed on: for each pass a token is reserved. */
  readonly passes: number;
  /**
   * Of a try that belongs to a multi-lock: nothing is done unless this hold owns its lock, which is
   * one of `together`.
   */
  readonly after: Hold | null;
  /**
   * The digit that the lock gets when it is ours at once. A hold that is granted by message is not
   * told before it is renewed.
   */
  readonly flag: HolderFlag;
  /**
   * Of a try that asks a holder with nobody inside to give the lock up; such a holder answers with
   * it. It queues behind that one, and behind no other. Null: it asks nobody.
   */
  readonly nonce: string | null;
  /** Of such a try: the token of the only holder that is asked. Left out: whichever it is. */
  readonly meant?: number | null;
  /** Where grants are heard, or will be by a client that queues unheard; null while nothing is subscribed. */
  readonly channel: Channel | null;
  /** Of permits: what is asked for. Null: what `head` wants. */
  readonly run: Run | null;
}

/** What is asked for the callers of one process that want permits. */
export interface Run {
  /**
   * At least so many units, which is what the first caller wants, and up to so many: those of all
   * that one hold may serve.
   */
  readonly units: number;
  readonly upTo: number;
  /** How many permits there are by their code; null: it does not say. */
  readonly permits: number | null;
  /** How many they are: for each a token is reserved. */
  readonly callers: number;
}

/** `counted`: the number of its receivers proves something. */
interface Channel {
  readonly name: string;
  readonly isHeard: boolean;
  readonly counted: boolean;
}

/**
 * How callers of a kind wake. By a grant: Redis keeps a queue and makes the next waiter the owner;
 * `solitary`: every waiter has an entry of its own in it, so that order holds over the whole fleet.
 * By a message on a channel, which only says that the lock may be free. By time: there are no
 * messages, and `pause` is how long to sleep before the n-th further try, in ms.
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
 * A lock kind says what to try and how to take it back. It never loops, sleeps or subscribes: the
 * waiting engine does, the same way for every kind. Each method is one command; a rejection means
 * that its outcome is unknown.
 */
export interface LockKind extends Renewer, Admin {
  /** What makes it, a method of the client or a function beside it; or what that makes. */
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
    | "election";
  /** How events call it. */
  readonly eventKind: EventKind;
  /** Two kinds with the same protocol are one lock to a scope when name and protocol agree. */
  readonly protocol: "redisson" | "redisson-fenced" | "spin" | "quorum" | GrantProtocol;
  readonly wake: Wake;
  /** Passes in memory before the lock must go to Redis, where a lock has no number of its own. */
  readonly localHandoffs: number;
  /** Can a process keep a lock from turn to turn? Its renewals tell then whether somebody waits. */
  readonly hasStays: boolean;
  attempt(hold: Hold, ask: AttemptOptions, callback: Callback<AttemptAnswer>): void;
  /** Takes a hold out of queue and lock; safe at any time, any number of times. */
  withdraw(hold: Leavable): Promise<unknown>;
  release(hold: Hold, callback: Callback<ReleaseAnswer>): void;
  /** Release and queue again in one command. Null: the kind has no queue. */
  readonly yield:
    | ((old: Hold, hold: Hold, ask: AttemptOptions, callback: Callback<YieldAnswer>) => void)
    | null;
  /**
   * Raises the TTL of a lock that is ours, by one command; where replicas must have it, resolves
   * when they do. Rejects with NotReplicatedError when too few have. `told`: the digit that the
   * lock gets; left out: as it is.
   */
  confirm(
    hold: { readonly name: string; readonly id: string; readonly label: string },
    ttl: number,
    timeout: number,
    flag?: HolderFlag,
  ): Promise<RenewAnswer>;
  /**
   * Ends holds that nobody is inside of, up to `batch` of one server in one command. `isFirst`:
   * none has gone just before them.
   * RACE: a process that ends reads no answer which says that the server does not know the script.
   * So the script's text goes with the first, and with no other: the connection takes only so much
   * at once. Null: the kind has no stays.
   */
  readonly releaseAll: ((holds: readonly Hold[], isFirst: boolean) => Promise<ReleaseAnswer[]>) | null;
  /** Answers a recall that names this nonce, to the client that has asked. Null: the kind has no recalls. */
  readonly answer: ((name: string, nonce: string, is: "busy" | "idle") => void) | null;
  /** True: no caller gets the lock before it is confirmed, because that is what replicas acknowledge. */
  readonly isConfirmed: boolean;
  /** Tell Redis how often the lock was entered. Null: Redis does not care. */
  readonly recount: ((hold: Hold, count: number) => Promise<RenewAnswer["is"]>) | null;
  /**
   * Locks of one protocol with the same answer are on one server for good, so an attempt at one of
   * them can look at another. Null: of this kind none can.
   */
  readonly serverGroup: ((name: string) => string) | null;
  /**
   * Which callers of one process may be inside together: one at a time; all readers, by one hold; or as
   * many as there are units in a hold.
   */
  readonly policy: "exclusive" | "shared" | "pooled";
  /** Leaves a hold `stays` units; 0: it ends. Null: a hold has one unit. */
  readonly shrink: ((hold: Hold, stays: number, callback: Callback<ReleaseAnswer>) => void) | null;
  /**
   * Which of the two locks it is where readers share one, and what they are to each other. Left
   * out: its holder is alone.
   */
  readonly mode?: "read" | "write";
  readonly sharing?: Sharing;
  /** Do its leases have fencing tokens? */
  readonly hasTokens: boolean;
}

/** What inspections, people's tools and warnings ask about a lock. No acquisition depends on it. */
interface Admin {
  /**
   * `nonce`: its holder is asked whether somebody is inside, if there may be nobody; left out:
   * nobody is asked.
   */
  inspect(name: string, nonce?: string): Promise<Inspected>;
  /** The same without waiters. */
  holder(name: string): Promise<Inspected>;
  /** What inspections call a hold, with its random bits. */
  shownAs(hold: Hold): string;
  /**
   * How many units would be free if nobody held any but these holds of this process: what a caller
   * behind them waits for in vain as long as they stay. Null: there is one unit, which one holds at
   * a time.
   */
  readonly unitsFreeWithout: ((name: string, holds: readonly Hold[]) => Promise<number>) | null;
  /**
   * `label`: for the holder, where the protocol has a message for it. Resolves with how many holds
   * were ended: 0 = the holder that is meant does not hold it.
   */
  forceRelease(name: string, label: string | null, meant: Meant): Promise<number>;
}

/** Which holder a forced release means. Both null: whichever it is, or all of them where several hold. */
export interface Meant {
  /** Its id, as inspections show it. */
  readonly holder: string | null;
  readonly token: number | null;
}

/** What readers and writers of one lock are to each other. */
export interface Sharing {
  /** The kind whose callers share a hold, and those whose callers wait for all readers. */
  readonly readers: LockKind;
  readonly writers: readonly LockKind[];
  /**
   * Asks whether more readers may come into this hold, and raises its end to `lease` ms from now,
   * both only where nobody waits. "gone": nobody has it. It never makes a hold, nor takes a place.
   */
  join(hold: Hold, lease: number, callback: Callback<AttemptAnswer>): void;
  /**
   * Answers a recall that names this nonce, to the writer's client that has asked: is a reader of
   * this process inside?
   */
  answer(name: string, nonce: string, is: "busy" | "idle"): void;
  /**
   * How many holds readers have, and how many of these may have nobody inside. `nonce`: those are
   * asked whether somebody is; left out: nobody is asked.
   */
  readersOf(name: string, nonce?: string): Promise<{ readonly held: number; readonly kept: number }>;
}

/** Takes a hold back, whatever has become of it; safe at any time, any number of times. */
export interface Withdrawer {
  withdraw(hold: Leavable): Promise<unknown>;
}

/** What is known of a hold that must go: its entry in the queue too, if it may have one. */
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
   * How often it may have been passed on in this process before a caller of this one gets it. Left
   * out: as its kind has it.
   */
  readonly passes?: number | undefined;
}

/**
 * One try of several that a multi-lock sends together, in order: nothing is done in Redis unless
 * the lock of the one before it is owned by that one's hold. Then the call ends with BLOCKED.
 */
export interface BatchedTry {
  readonly dependsOn: BatchedTry | null;
  /**
   * With what it was asked for last. Null: with nothing of its own, because another caller's
   * command tells for it too.
   */
  hold: Hold | null;
  /** The holder that it met may have nobody inside. */
  mayBeIdle: boolean;
  /**
   * ms that the caller of the multi-lock is willing to wait, and so for the answer; this try does
   * not wait.
   */
  readonly wait: number;
}

/**
 * Why a try of a multi-lock ends: the lock before it is not held. Nobody outside of the package
 * sees this error.
 */
export const BLOCKED = new Error("the lock before it is not held");
