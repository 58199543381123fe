import type { HoldingParty, Listed, WaitingParty } from "../../index.ts";
import { Glob, waitingProcesses } from "../../inside.ts";
import type { LeaseLengths } from "./lease-lengths.ts";
import type { Happened, ShownHolder, ShownLock, ShownParty, ShownWaiter } from "./shown.ts";
import { longestWait } from "./survey.ts";
import type { Narrow } from "./watches.ts";

/** `lease`: how long it is, in ms; null: it is not known. */
export const shownHolder = (holder: HoldingParty, lease: number | null = null): ShownHolder => ({
  ...partyOf(holder),
  heldFor: holder.heldFor,
  token: holder.token,
  remaining: holder.remaining === Number.POSITIVE_INFINITY ? null : holder.remaining,
  lease,
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

export function shownLock(lock: Listed, lost: Happened | null, lengths: LeaseLengths): ShownLock {
  const { kind, name, holder, holders, kept, permits } = lock;
  return {
    kind,
    name,
    holder: holder && shownHolder(holder, lengths.of(holder.id)),
    holderCount: holders.length,
    waitingProcesses: waitingProcesses(lock),
    longest: longestWait(lock),
    kept,
    permits,
    lost,
  };
}

/**
 * What is looked for stands in the name, or in what is known of a holder or waiter; or it is a
 * pattern for the name.
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

const KINDS = ["lock", "readWrite", "semaphore", "election", "redisson"] as const;

/** Names are patterns where they have what patterns are made of. */
const isPattern = (search: string): boolean => /[*?[]/.test(search);
const literally = (text: string): string => text.replace(/[\\*?[\]]/g, "\\$&");

/** Names are looked through for these. Null: all locks are wanted. */
export function narrowOf(view: string | null, wanted: URLSearchParams): Narrow | null {
  if (view === "lock") {
    const kind = KINDS.find((one) => one === wanted.get("kind"));
    return kind ? { match: literally(wanted.get("name") ?? ""), kind, always: false } : null;
  }
  const search = wanted.get("search") ?? "";
  if (view !== "now" || search === "") return null;
  return isPattern(search)
    ? { match: search, always: true }
    : { match: `*${literally(search)}*`, always: false };
}
