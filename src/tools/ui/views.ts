import type { HoldingParty, Listed, WaitingParty } from "../../index.ts";
import { Glob, waitingProcesses } from "../../inside.ts";
import type { LeaseLengths } from "./lease-lengths.ts";
import type { Happened, ShownHolder, ShownLock, ShownParty, ShownWaiter } from "./shown.ts";
import type { Seen } from "./survey.ts";
import type { Narrow } from "./watches.ts";

/** `lengths`: of leases, as far as they are known. `kept`: the lock may be cached. */
export const shownHolder = (
  holder: HoldingParty,
  lengths: LeaseLengths | null = null,
  kept = false,
): ShownHolder => ({
  ...partyOf(holder),
  heldFor: holder.heldFor,
  token: holder.token,
  remaining: holder.remaining === Number.POSITIVE_INFINITY ? null : holder.remaining,
  lease: lengths?.of(holder.id) ?? null,
  unrenewed: kept ? null : (lengths?.unrenewed(holder.id) ?? null),
});

export const shownWaiter = (waiter: WaitingParty): ShownWaiter => ({
  ...partyOf(waiter),
  waitedFor: waiter.waitedFor,
});

export const partyOf = ({ id, label, host, pid, units, mode }: HoldingParty | WaitingParty): ShownParty => ({
  id,
  label,
  host,
  pid,
  units,
  mode,
});

export function shownLock(lock: Seen, lost: Happened | null, lengths: LeaseLengths): ShownLock {
  const { kind, name, holder, holders, longest, kept, permits } = lock;
  return {
    kind,
    name,
    holder: holder && shownHolder(holder, lengths, kept),
    holderCount: holders.length,
    waitingProcesses: waitingProcesses(lock),
    longest,
    kept,
    permits,
    lost,
  };
}

/**
 * Does the name contain the search, or the label or id of a holder or waiter? A pattern is compared
 * with the name alone.
 */
export function fits(lock: Listed, search: string): boolean {
  if (search === "") return true;
  if (isPattern(search)) return new Glob(search).matches(lock.name);
  const wanted = search.toLowerCase();
  const has = (text: string | null): boolean => text?.toLowerCase().includes(wanted) === true;
  return (
    has(lock.name) ||
    [...lock.holders, ...(lock.waiters ?? [])].some(({ id, label }) => has(label) || has(id))
  );
}

const KINDS = ["lock", "readWrite", "semaphore", "election", "remember", "redisson"] as const;

/** Does it contain a character with a meaning in patterns? */
export const isPattern = (search: string): boolean => /[*?[]/.test(search);
const literally = (text: string): string => text.replace(/[\\*?[\]]/g, "\\$&");

/** The names to look for. Null: all locks are wanted. */
export function narrowOf(view: string | null, wanted: URLSearchParams): Narrow | null {
  if (view === "lock") {
    const kind = KINDS.find((one) => one === wanted.get("kind"));
    return kind ? { match: literally(wanted.get("name") ?? ""), kind } : null;
  }
  const search = wanted.get("search") ?? "";
  if (view !== "now" || search === "") return null;
  return { match: isPattern(search) ? search : `*${literally(search)}*` };
}
