import type { Listed, ListedHolder, ListedWaiter } from "../list/listed.ts";
import type { ShownHolder, ShownLock, ShownOwner } from "./shown.ts";

/** Rows that a browser still shows at once. */
const MOST = 500;

export const shownHolder = (holder: ListedHolder): ShownHolder => ({
  ...ownerOf(holder),
  for: holder.heldFor,
  token: holder.token,
  left: holder.remaining === Number.POSITIVE_INFINITY ? null : holder.remaining,
});

export const shownWaiter = (waiter: ListedWaiter): ShownOwner => ({
  ...ownerOf(waiter),
  for: waiter.waitedFor,
});

const ownerOf = ({ id, label, host, pid, units, mode }: ListedHolder | ListedWaiter) =>
  ({ id, label, host, pid, units, mode }) as const;

export function shownLock({ kind, name, holder, holders, waiters, kept, permits }: Listed): ShownLock {
  return {
    kind,
    name,
    holder: holder && shownHolder(holder),
    holders: holders.length,
    waiters: waiters.length,
    waited: waitedFor(waiters),
    kept,
    permits,
  };
}

/** What is looked for stands in the name, or in what is known of a holder or waiter. */
export function fits(lock: Listed, search: string): boolean {
  if (search === "") return true;
  const wanted = search.toLowerCase();
  const has = (text: string | null): boolean => text?.toLowerCase().includes(wanted) === true;
  return has(lock.name) || [...lock.holders, ...lock.waiters].some(({ id, label }) => has(label) || has(id));
}

/** Those first for which somebody has waited longest, and of the others those that were held longest. */
export function foremost(locks: readonly Listed[]): ShownLock[] {
  const ranked = locks.map((lock) => ({
    lock,
    waited: waitedFor(lock.waiters) ?? (lock.waiters.length > 0 ? 0 : -1),
  }));
  ranked.sort(
    (one, other) =>
      other.waited - one.waited ||
      (other.lock.heldFor ?? 0) - (one.lock.heldFor ?? 0) ||
      (one.lock.name < other.lock.name ? -1 : 1),
  );
  return ranked.slice(0, MOST).map(({ lock }) => shownLock(lock));
}

/** Places in a queue are in the order of coming, but for those of other priority or mode: the longest wait is not always the first's. */
function waitedFor(waiters: readonly ListedWaiter[]): number | null {
  let longest: number | null = null;
  for (const { waitedFor } of waiters)
    if (waitedFor !== null && waitedFor > (longest ?? -1)) longest = waitedFor;
  return longest;
}
