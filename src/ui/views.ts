import { Glob } from "../list/glob.ts";
import { type Listed, waitingProcesses } from "../list/listed.ts";
import type { HoldingParty, WaitingParty } from "../party.ts";
import type { LeaseLengths } from "./lease-lengths.ts";
import type { Happened, ShownHolder, ShownLock, ShownOwner } from "./shown.ts";
import { waitedFor } from "./survey.ts";
import type { Narrow } from "./watches.ts";

/** `length`: of its lease, in ms; null: it is not known. */
export const shownHolder = (holder: HoldingParty, length: number | null = null): ShownHolder => ({
  ...ownerOf(holder),
  length,
  for: holder.heldFor,
  token: holder.token,
  left: holder.remaining === Number.POSITIVE_INFINITY ? null : holder.remaining,
});

export const shownWaiter = (waiter: WaitingParty): ShownOwner => ({
  ...ownerOf(waiter),
  for: waiter.waitedFor,
});

const ownerOf = ({ id, label, host, pid, units, mode }: HoldingParty | WaitingParty) =>
  ({ id, label, host, pid, units, mode }) as const;

export function shownLock(lock: Listed, lost: Happened | null, lengths: LeaseLengths): ShownLock {
  const { kind, name, holder, holders, kept, permits } = lock;
  return {
    kind,
    name,
    holder: holder && shownHolder(holder, lengths.of(holder.id)),
    holders: holders.length,
    waiters: waitingProcesses(lock),
    waited: waitedFor(lock),
    kept,
    permits,
    lost,
  };
}

/** What is looked for stands in the name, or in what is known of a holder or waiter; or it is a pattern for the name. */
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
