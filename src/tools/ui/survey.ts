import type { Listed } from "../../index.ts";
import { isStandby } from "../../inside.ts";
import type { Leaderless } from "./leaderless.ts";

/**
 * The limits for the locks that are kept in memory, and for their holders and waiters. Further locks
 * are only counted, those without waiters first.
 */
const LOCKS = 10_000;
const PEOPLE = 100_000;

/** A lock as a look has found it. */
export interface Seen extends Listed {
  /**
   * ms of the longest wait; of an election without a leader, since it was first seen so. Null: no
   * process waits, or candidates stand by.
   */
  readonly longest: number | null;
  /** When its times were true, on the monotonic clock. A look at thousands of locks takes seconds. */
  readonly readAt: number;
}

/** The locks at the end of a look. */
export interface Survey {
  /** The number of the look. */
  readonly number: number;
  /** The longest wait first, then the longest hold. */
  readonly locks: readonly Seen[];
  /** How many there were, and how many of them had waiters. */
  readonly total: number;
  readonly waited: number;
  /** There were more locks than `locks` has. */
  readonly isCut: boolean;
  /** The look has not ended: there may be more. */
  readonly isPartial: boolean;
  /** When the look ended, on the monotonic clock. */
  readonly at: number;
}

/** What a look has seen so far. It keeps a bounded number of locks, however many there are. */
export class Tally {
  readonly #leaderless: Leaderless;
  #locks: Seen[] = [];
  #total = 0;
  #waited = 0;

  constructor(leaderless: Leaderless) {
    this.#leaderless = leaderless;
  }

  add(lock: Listed): void {
    this.#total++;
    if (isWaited(lock)) this.#waited++;
    this.#locks.push({ ...lock, longest: this.#longest(lock), readAt: performance.now() });
    if (this.#locks.length === 2 * LOCKS) this.#cut();
  }

  #longest(lock: Listed): number | null {
    if (!isWaited(lock)) return null;
    return lock.kind === "election" ? this.#leaderless.found(lock.name) : longestWait(lock);
  }

  survey(number: number, isPartial: boolean): Survey {
    this.#cut();
    const [locks, total, waited] = [[...this.#locks], this.#total, this.#waited];
    const isCut = total > locks.length;
    return { number, locks, total, waited, isCut, isPartial, at: performance.now() };
  }

  #cut(): void {
    this.#locks.sort(inFront);
    let people = 0;
    const end = this.#locks.findIndex(({ holders, waiters }, i) => {
      people += holders.length + (waiters?.length ?? 0);
      return i === LOCKS || (i > 0 && people > PEOPLE);
    });
    if (end >= 0) this.#locks.length = end;
  }
}

/**
 * The longest wait first; locks without waiters after that, the longest hold first. Compared are the
 * moments in which these began: a lock that was read later has waited for longer by then.
 */
const inFront = (one: Seen, other: Seen): number =>
  Number(isWaited(other)) - Number(isWaited(one)) ||
  (isWaited(one) ? began(one, one.longest) - began(other, other.longest) : 0) ||
  began(one, one.heldFor) - began(other, other.heldFor) ||
  (one.name < other.name ? -1 : 1);

/** On the monotonic clock. */
export const began = ({ readAt }: Seen, ago: number | null): number => readAt - (ago ?? 0);

/** Does a process wait for it, and not only stand by? */
export const isWaited = (lock: Pick<Listed, "kind" | "holder" | "waiters">): boolean =>
  (lock.waiters?.length ?? 0) > 0 && !isStandby(lock);

/**
 * In ms. The first in the queue has not always waited longest: callers of another priority or mode
 * may overtake.
 */
function longestWait({ waiters }: Pick<Listed, "waiters">): number | null {
  let longest: number | null = null;
  for (const { waitedFor } of waiters ?? [])
    if (waitedFor !== null && waitedFor > (longest ?? -1)) longest = waitedFor;
  return longest;
}
