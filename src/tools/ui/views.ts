import type { HoldingParty, Listed, WaitingParty } from "../../index.ts";
import { Glob, waitingProcesses } from "../../inside.ts";
import type { LeaseLengths } from "./lease-lengths.ts";
import type { ToldCall } from "./observed.ts";
import type { Only, Reported, ShownHolder, ShownLock, ShownParty, ShownWaiter } from "./shown.ts";
import { isLong, isWaited, type Seen } from "./survey.ts";
import type { Narrow } from "./watches.ts";

/** What is known of a hold besides what Redis has. */
export interface Known {
  readonly lengths: LeaseLengths;
  /** What the holder's process has reported of it; null: nothing. */
  readonly callOf: (
    lock: Pick<Listed, "kind" | "name">,
    holder: HoldingParty,
  ) => Pick<ToldCall, "lease" | "site"> | null;
}

/** `known`: null: where it is not shown. */
export function shownHolder(
  holder: HoldingParty,
  lock: Pick<Listed, "kind" | "name" | "kept">,
  known: Known | null,
): ShownHolder {
  const { id, heldFor, token } = holder;
  const remaining = holder.remaining === Number.POSITIVE_INFINITY ? null : holder.remaining;
  const call = known?.callOf(lock, holder) ?? null;
  const told = call?.lease ?? null;
  // Its process has reported that the watchdog renews it to this length. So it was renewed when this
  // much was left, and the watchdog is late when less than half is left.
  const passed = told !== null && remaining !== null && remaining <= told ? told - remaining : null;
  const late = passed !== null && passed > (told ?? 0) / 2 ? passed : null;
  return {
    ...partyOf(holder),
    heldFor,
    token,
    remaining,
    lease: known?.lengths.of(id) ?? (passed === null ? null : told),
    renewed: known?.lengths.renewed(id) ?? passed,
    unrenewed: lock.kept ? null : (known?.lengths.unrenewed(id) ?? late),
    site: call?.site ?? null,
  };
}

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

export function shownLock(lock: Seen, lost: Reported | null, known: Known): ShownLock {
  const { kind, name, holder, holders, longest, kept, permits } = lock;
  return {
    kind,
    name,
    holder: holder && shownHolder(holder, lock, known),
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

const FILTERS: Readonly<Record<Only, (lock: Seen) => boolean>> = {
  held: ({ holder }) => holder !== null,
  waited: isWaited,
  long: isLong,
};

/** The filter of this name. Null: there is none, so all locks are wanted. */
export const filterOf = (only: string | null): Only | null =>
  only !== null && Object.hasOwn(FILTERS, only) ? (only as Only) : null;

export const passes = (lock: Seen, only: Only | null): boolean => only === null || FILTERS[only](lock);

const KINDS = ["lock", "readWrite", "semaphore", "election", "remember", "redisson"] as const;

/** Null: there is no such kind. */
export const kindOf = (text: string | null): Listed["kind"] | null =>
  KINDS.find((one) => one === text) ?? null;

/** Does it contain a character with a meaning in patterns? */
export const isPattern = (search: string): boolean => /[*?[]/.test(search);
const literally = (text: string): string => text.replace(/[\\*?[\]]/g, "\\$&");

/** The names to look for. Null: all locks are wanted. */
export function narrowOf(view: string | null, wanted: URLSearchParams): Narrow | null {
  if (view === "lock") {
    const kind = kindOf(wanted.get("kind"));
    return kind ? { match: literally(wanted.get("name") ?? ""), kind } : null;
  }
  const search = wanted.get("search") ?? "";
  if (view !== "now" || search === "") return null;
  return { match: isPattern(search) ? search : `*${literally(search)}*` };
}
