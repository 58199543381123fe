import type { Listed } from "../../index.ts";

/**
 * More locks are not kept in memory, nor more of their holders and waiters: those that nobody waits
 * for are only counted.
 */
const LOCKS = 10_000;
const PEOPLE = 100_000;

/** The locks as they were. */
export interface Survey {
  /** Counts the looks. */
  readonly number: number;
  /** The foremost first. */
  readonly locks: readonly Listed[];
  /** How many there were, and how many of them somebody waited for. */
  readonly total: number;
  readonly waited: number;
  /** There were more than `locks` has. */
  readonly isCut: boolean;
  /** There may be more: it has not ended. */
  readonly isPartial: boolean;
  /** When it ended, on the monotonic clock. */
  readonly at: number;
}

interface Ranked {
  readonly lock: Listed;
  readonly waited: number;
}

/** What a look has seen so far: however many locks there are, it keeps a bounded number of them. */
export class Tally {
  #ranked: Ranked[] = [];
  #total = 0;
  #waited = 0;

  add(lock: Listed): void {
    this.#total++;
    const isWaited = (lock.waiters?.length ?? 0) > 0;
    if (isWaited) this.#waited++;
    this.#ranked.push({ lock, waited: longestWait(lock) ?? (isWaited ? 0 : -1) });
    if (this.#ranked.length === 2 * LOCKS) this.#cut();
  }

  survey(number: number, isPartial: boolean): Survey {
    this.#cut();
    const locks = this.#ranked.map(({ lock }) => lock);
    const [total, waited] = [this.#total, this.#waited];
    return { number, locks, total, waited, isCut: total > locks.length, isPartial, at: performance.now() };
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

/** Those first for which somebody has waited longest, and of the others those that were held longest. */
const inFront = (one: Ranked, other: Ranked): number =>
  other.waited - one.waited ||
  (other.lock.heldFor ?? 0) - (one.lock.heldFor ?? 0) ||
  (one.lock.name < other.lock.name ? -1 : 1);

/**
 * In ms. Places in a queue are in the order of coming, but for those of other priority or mode: the
 * longest wait is not always the first's.
 */
export function longestWait({ waiters }: Pick<Listed, "waiters">): number | null {
  let longest: number | null = null;
  for (const { waitedFor } of waiters ?? [])
    if (waitedFor !== null && waitedFor > (longest ?? -1)) longest = waitedFor;
  return longest;
}
