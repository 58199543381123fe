/**
 * How an order is kept apart from the others, in the order in which the articles come to them.
 * `setnx-expire`, `get-del` and `no-owner` are wrong, as many articles have them. `spin` is the spin
 * lock of better articles, `spinLock` the library's, whose callers of one process pass the lock on.
 */
export const STRATEGIES = [
  "none",
  "optimistic",
  "setnx-expire",
  "get-del",
  "no-owner",
  "spin",
  "spinLock",
  "redisson",
  "hand-off",
  "fair",
  "quorum",
] as const;
export type Strategy = (typeof STRATEGIES)[number];

/** Wrong on purpose: a run shows the damage. */
const WRONG = ["setnx-expire", "get-del", "no-owner"] as const;
export type Wrong = (typeof WRONG)[number];
export const isWrong = (strategy: Strategy): strategy is Wrong =>
  (WRONG as readonly Strategy[]).includes(strategy);

/** The library's locks, which run on either Redis client. */
const LIBRARY = ["spinLock", "redisson", "hand-off", "fair", "quorum"] as const;
export type LibraryLock = (typeof LIBRARY)[number];
export const isLibraryLock = (strategy: Strategy): strategy is LibraryLock =>
  (LIBRARY as readonly Strategy[]).includes(strategy);

/** Those with fencing tokens, which the shop can check at every write. */
export const WITH_TOKENS: readonly Strategy[] = ["redisson", "hand-off", "fair", "quorum"];
