import type { Listed } from "../../index.ts";

/** A hold counts as far older than usual from this age, in ms … */
const AT_LEAST = 10 * 60_000;
/** … if it is this many times as old as the median hold … */
const TIMES = 10;
/** … of at least this many. */
const HOLDS = 5;

export interface OldHolds<Lock extends Listed> {
  /** The oldest first. */
  readonly locks: readonly Lock[];
  /** The age of the median hold, in ms, when there were last enough to tell. */
  readonly usual: number;
}

/**
 * Finds the locks whose holders are far older than usual. Leaders of elections and cached locks are
 * meant to stay, so they do not count.
 *
 * A hold that was found stays found until it ends, or is no longer half that much older than the
 * others: otherwise it would come and go with the number of short holds.
 */
export class OldHoldFinder {
  #found: ReadonlySet<string> = new Set();
  #usual = 0;

  /** Null: there is none, or too few holds to tell. */
  see<Lock extends Listed>(locks: readonly Lock[]): OldHolds<Lock> | null {
    const holds = locks
      .flatMap((lock) => {
        const { kind, kept, holder, heldFor } = lock;
        return kind === "election" || kept || !holder || heldFor === null
          ? []
          : [{ lock, age: heldFor, id: holder.id }];
      })
      .sort((one, other) => other.age - one.age);
    const isEnough = holds.length >= HOLDS;
    if (isEnough) this.#usual = holds[holds.length >> 1]?.age ?? 0;
    const old = holds.filter(({ age, id }) => {
      const isFound = this.#found.has(id);
      if (!isEnough) return isFound;
      return age >= Math.max(AT_LEAST, this.#usual * (isFound ? TIMES / 2 : TIMES));
    });
    this.#found = new Set(old.map(({ id }) => id));
    return old.length > 0 ? { locks: old.map(({ lock }) => lock), usual: this.#usual } : null;
  }
}
