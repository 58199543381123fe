import type { Listed } from "../../index.ts";

/**
 * The limits for the locks that are kept in memory, and for their holders and waiters. Further locks
 * are only counted, those without waiters first.
 */
const LOCKS = 10_000;
const PEOPLE = 100_000;

/** The locks at the end of a look. */
export interface Survey {
  /** The number of the look. */
  readonly number: number;
  /** The longest wait first, then the longest hold. */
  readonly locks: readonly Listed[];
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

interface Ranked {
  readonly lock: Listed;
  readonly waited: number;
}

/** What a look has seen so far. It keeps a bounded number of locks, however many there are. */
export class Tally {
  #ranked: Ranked[] = [];
  #total = 0;
  #waited = 0;

  add(lock: Listed): void {
    this.#total++;
    const waits = isWaited(lock);
    if (waits) this.#waited++;
    this.#ranked.push({ lock, waited: longestWait(lock) ?? (waits ? 0 : -1) });
    if (this.#ranked.length === 2 * LOCKS) this.#cut();
  }

  survey(number: number, isPartial: boolean): Survey {
    this.#cut();
    const locks = this.#ranked.map(({ lock }) => lock);
    const [total, waited] = [this.#total, this.#waited];
    const isCut = total > locks.length;
    return { number, locks, total, waited, isCut, isPartial, at: performance.now() };
  }

  #cut(): void {
    this.#ranked.sort(inFront);
    let people = 0;
    const end = this.#ranked.findIndex(({ lock: { holders, waiters } }, i) => {
      people += holders.length + (waiters?.length ?? 0);
      return i === LOCKS || (i > 0 && people > PEOPLE);
    });
    if (end >= 0) this.#ranked.length = end;
  }
}

/** The longest wait first; locks without waiters after that, the longest hold first. */
const inFront = (one: Ranked, other: Ranked): number =>
  other.waited - one.waited ||
  (other.lock.heldFor ?? 0) - (one.lock.heldFor ?? 0) ||
  (one.lock.name < other.lock.name ? -1 : 1);

/** Does a process wait for it? */
export const isWaited = ({ waiters }: Pick<Listed, "waiters">): boolean => (waiters?.length ?? 0) > 0;

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
