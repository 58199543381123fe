import type { HoldingParty, WaitingParty } from "../party.ts";
import type { CountedInspection } from "../redis/counted-replies.ts";
import type { Inspected } from "../redis/replies.ts";
import type { Listed } from "./listed.ts";

/** What an inspection of a lock shows; null: nobody holds it, and nobody waits. */
export type Look = Omit<Listed, "kind" | "name">;

/** Of a lock that one has at a time. */
export const ofExclusive = ({ holder, waiters, kept }: Inspected): Look | null =>
  look(holder ? [holder] : [], waiters, kept, null);

/** Of a lock that several share. */
export function ofCounted(
  { holders, waiters, permits }: CountedInspection,
  kind: "readWrite" | "semaphore",
): Look | null {
  const parties = holders.map(({ party }) => party);
  parties.sort((one, other) => (one.since ?? 0) - (other.since ?? 0));
  const kept = holders.length > 0 && holders.every((holder) => holder.kept);
  return look(parties, waiters, kept, kind === "semaphore" ? permits : null);
}

function look(
  holders: readonly HoldingParty[],
  waiters: readonly WaitingParty[] | null,
  kept: boolean,
  permits: number | null,
): Look | null {
  const [holder = null] = holders;
  if (!holder && !waiters?.length) return null;
  const { heldFor, remaining } = holder ?? { heldFor: null, remaining: null };
  return { holders, holder, heldFor, remaining, waiters, kept, permits };
}
