import type { Listed } from "../../index.ts";
import { isStandby } from "../../inside.ts";
import type { Leaderless } from "./leaderless.ts";
import { LONG_WAIT, type Only } from "./shown.ts";

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
}

/** The locks at the end of a look. */
export interface Survey {
  /** The number of the look. */
  readonly number: number;
  /** The longest wait first, then the longest hold. */
  readonly locks: readonly Seen[];
  /** How many there were, and how many of them each filter leaves. */
  readonly total: number;
  readonly counts: Readonly<Record<Only, number>>;
  /** There were more locks than `locks` has. */
  readonly isCut: boolean;
  /** The look has not ended: there may be more. */
  readonly isPartial: boolean;
  /** When the look ended, on the monotonic clock. */
  readonly at: number;
}

/** A lock, and the moment of its times, on the monotonic clock. */
interface Moment {
  readonly lock: Seen;
  readonly at: number;
}

/** What a look has seen so far. It keeps a bounded number of locks, however many there are. */
export class Tally {
  readonly #leaderless: Leaderless;
  #locks: Moment[] = [];
  #total = 0;
  readonly #counts = { held: 0, waited: 0, long: 0 };

  constructor(leaderless: Leaderless) {
    this.#leaderless = leaderless;
  }

  add(lock: Listed): void {
    const seen = { ...lock, longest: this.#longest(lock) };
    this.#total++;
    if (seen.holder) this.#counts.held++;
    if (isWaited(seen)) this.#counts.waited++;
    if (isLong(seen)) this.#counts.long++;
    this.#locks.push({ lock: seen, at: performance.now() });
    if (this.#locks.length === 2 * LOCKS) this.#cut(performance.now());
  }

  #longest(lock: Listed): number | null {
    if (!isWaited(lock)) return null;
    return lock.kind === "election" ? this.#leaderless.found(lock.name) : longestWait(lock);
  }

  survey(number: number, isPartial: boolean): Survey {
    const at = performance.now();
    this.#cut(at);
    const locks = this.#locks.map(({ lock }) => lock);
    const total = this.#total;
    // Some waits have become long since they were read.
    const counts = { ...this.#counts, long: Math.max(this.#counts.long, locks.filter(isLong).length) };
    return { number, locks, total, counts, isCut: total > locks.length, isPartial, at };
  }

  /**
   * Sorts them, and drops what is too much. RACE: to read thousands of locks takes seconds, and those
   * that were read later would look as if they had waited for longer. So first all have their times
   * as of `now`.
   */
  #cut(now: number): void {
    this.#locks = this.#locks.map(({ lock, at }) => ({ lock: after(now - at, lock), at: now }));
    this.#locks.sort((one, other) => inFront(one.lock, other.lock));
    let people = 0;
    const end = this.#locks.findIndex(({ lock: { holders, waiters } }, i) => {
      people += holders.length + (waiters?.length ?? 0);
      return i === LOCKS || (i > 0 && people > PEOPLE);
    });
    if (end >= 0) this.#locks.length = end;
  }
}

/**
 * A lock so many ms later. The time left of its hold stays as it was read: it may have been renewed
 * since.
 */
function after(ms: number, lock: Seen): Seen {
  const later = (time: number | null): number | null => (time === null ? null : Math.round(time + ms));
  const holders = lock.holders.map((holder) => ({ ...holder, heldFor: later(holder.heldFor) }));
  const waiters = lock.waiters?.map((one) => ({ ...one, waitedFor: later(one.waitedFor) })) ?? null;
  const [holder = null] = holders;
  const [heldFor, longest] = [later(lock.heldFor), later(lock.longest)];
  return { ...lock, holders, holder, heldFor, waiters, longest };
}

/** The longest wait first; locks without waiters after that, the longest hold first. */
const inFront = (one: Seen, other: Seen): number =>
  rankOf(other) - rankOf(one) ||
  (other.heldFor ?? 0) - (one.heldFor ?? 0) ||
  (one.name < other.name ? -1 : 1);

const rankOf = (lock: Seen): number => lock.longest ?? (isWaited(lock) ? 0 : -1);

/** Has a process waited for so long that the line on top reports it? */
export const isLong = ({ longest }: Pick<Seen, "longest">): boolean => (longest ?? 0) >= LONG_WAIT;

/** Does a process wait for it, and not only stand by? */
export const isWaited = (lock: Pick<Listed, "kind" | "holder" | "waiters">): boolean =>
  (lock.waiters?.length ?? 0) > 0 && !isStandby(lock);

/**
 * In ms. The first in the queue has not always waited longest: callers of another priority or mode
 * may overtake.
 */
export function longestWait({ waiters }: Pick<Listed, "waiters">): number | null {
  let longest: number | null = null;
  for (const { waitedFor } of waiters ?? [])
    if (waitedFor !== null && waitedFor > (longest ?? -1)) longest = waitedFor;
  return longest;
}
