// The locks that `ls` and `top` show.
import type { Listed, LockClient } from "../../index.ts";
import { showParty, waitingProcesses } from "../../inside.ts";
import { visible } from "../../util/visible.ts";
import { isWaited, longestWait } from "../ui/survey.ts";
import { choice, flag } from "./args.ts";
import { showDuration } from "./durations.ts";
import type { Column } from "./table.ts";

export const LISTING = {
  held: flag(null, "only locks that are held"),
  waited: flag(null, "only locks that have waiters"),
  sort: choice(
    "order: by the longest wait, by the time held, or by name. Default: wait",
    "wait",
    "held",
    "name",
  ),
  kind: choice(
    "only this kind; redisson only on request, because that checks every hash of the database",
    "lock",
    "readWrite",
    "semaphore",
    "election",
    "remember",
    "redisson",
  ),
};

export interface ListingValues {
  readonly held: true | undefined;
  readonly waited: true | undefined;
  readonly sort: "wait" | "held" | "name" | undefined;
  readonly kind: Listed["kind"] | undefined;
}

/** All locks that match, in no order. */
export async function* listed(
  locks: LockClient,
  match: string | undefined,
  { held, waited, kind }: ListingValues,
  signal?: AbortSignal,
): AsyncGenerator<Listed, void, undefined> {
  for await (const lock of locks.list({ match, kind, signal })) {
    if (held && lock.holder === null) continue;
    if (waited && !lock.waiters?.length) continue;
    yield lock;
  }
}

/** ms of the longest wait; 0: no process waits, or candidates stand by. */
const waitOf = (lock: Listed): number => (isWaited(lock) ? (longestWait(lock) ?? 0) : 0);

const waitingNow = (lock: Listed): number => (isWaited(lock) ? waitingProcesses(lock) : 0);

const ORDERS: Readonly<Record<NonNullable<ListingValues["sort"]>, (a: Listed, b: Listed) => number>> = {
  wait: (a, b) => waitOf(b) - waitOf(a) || waitingNow(b) - waitingNow(a) || ORDERS.held(a, b),
  held: (a, b) => (b.heldFor ?? 0) - (a.heldFor ?? 0) || ORDERS.name(a, b),
  name: (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
};

export const sorted = (locks: readonly Listed[], by: ListingValues["sort"] = "wait"): Listed[] =>
  [...locks].sort(ORDERS[by]);

export const COLUMNS: readonly Column<Listed>[] = [
  { title: "NAME", show: ({ name }) => visible(name), weight: 1 },
  { title: "KIND", show: kindInWords, weight: 0, goes: 4 },
  { title: "HOLDER", show: holderInWords, weight: 1 },
  {
    title: "HELD",
    show: ({ heldFor, holder }) => (holder ? showDuration(heldFor) : "–"),
    weight: 0,
    goes: 1,
    right: true,
  },
  {
    title: "LEFT",
    show: ({ remaining, holder }) => (holder ? showDuration(remaining) : "–"),
    weight: 0,
    goes: 3,
    right: true,
  },
  {
    title: "WAITING PROCS",
    show: (lock) => String(waitingProcesses(lock) || "–"),
    weight: 0,
    right: true,
  },
  {
    title: "LONGEST",
    show: (lock) => (isWaited(lock) ? showDuration(waitOf(lock)) : lock.waiters?.length ? "standby" : "–"),
    weight: 0,
    goes: 2,
    right: true,
  },
];

/** The same for programs. */
export const cellsOf = (lock: Listed): string[] => COLUMNS.map(({ show }) => show(lock));

function kindInWords({ kind, holder, holders, permits }: Listed): string {
  if (kind === "semaphore")
    return `${holders.reduce((sum, { units }) => sum + units, 0)}/${permits ?? "?"} ${permits === 1 ? "slot" : "slots"}`;
  if (kind === "readWrite") return holder?.mode ?? "rw";
  return kind;
}

function holderInWords({ holder, holders, kept }: Listed): string {
  if (holder === null) return "(free)";
  const others = holders.length > 1 ? ` +${holders.length - 1}` : "";
  return `${showParty(holder)}${others}${kept ? " (kept)" : ""}`;
}
