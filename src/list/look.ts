import { TIME_TOKEN_MIN } from "../defaults.ts";
import { ownerOf } from "../owner.ts";
import type { CountedInspection } from "../redis/counted-replies.ts";
import type { Inspected } from "../redis/replies.ts";
import type { Listed, ListedHolder, ListedKind, ListedWaiter } from "./listed.ts";

/** What an inspection of a lock shows; null: nobody holds it, and nobody waits. */
export type Look = Omit<Listed, "kind" | "name">;

/** Of a lock that one has at a time. `now`: the server's time in ms. */
export function ofExclusive(
  { holder, token, remaining, kept, waiters }: Inspected,
  now: number,
): Look | null {
  const part = { units: 1, mode: null };
  const since = timeOf(token);
  const held =
    holder === null
      ? []
      : [{ ...ownerOf(holder, since), ...part, token, heldFor: passed(now, since), remaining }];
  const waiting = waiters.map((id) => ({ ...ownerOf(id, null), ...part, waitedFor: null }));
  return look(held, waiting, kept, null);
}

/** Of a lock that several share. */
export function ofCounted(inspected: CountedInspection, kind: ListedKind): Look | null {
  const now = inspected.at / 1_000;
  const holders = inspected.holders.map(({ holder, mode, units, token, remaining }) => {
    const since = timeOf(token);
    return {
      ...ownerOf(holder, since),
      ...partOf(mode, units),
      token,
      heldFor: passed(now, since),
      remaining,
    };
  });
  holders.sort((one, other) => one.token - other.token);
  const waiters = inspected.waiters.map(({ holder, mode, units }) => {
    return { ...ownerOf(holder, null), ...partOf(mode, units), waitedFor: null };
  });
  return look(holders, waiters, false, kind === "semaphore" ? inspected.permits : null);
}

/** Of a read-write lock a writer has all the units that there are, which says nothing to people. */
const partOf = (mode: "read" | "write" | "permits", units: number) =>
  mode === "permits" ? { units, mode: null } : { units: 1, mode };

function look(
  holders: readonly ListedHolder[],
  waiters: readonly ListedWaiter[],
  kept: boolean,
  permits: number | null,
): Look | null {
  const [holder = null] = holders;
  if (!holder && waiters.length === 0) return null;
  const { heldFor, remaining } = holder ?? { heldFor: null, remaining: null };
  return { holders, holder, heldFor, remaining, waiters, kept, permits };
}

/** Tokens are times in µs; of Redisson they count. */
const timeOf = (token: number): number | null => (token < TIME_TOKEN_MIN ? null : Math.floor(token / 1_000));

/** The server's clock may have gone back. */
const passed = (now: number, since: number | null): number | null =>
  since === null ? null : Math.max(0, Math.floor(now) - since);
