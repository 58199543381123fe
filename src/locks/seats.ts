// A multi-lock in one call: what the call may enter of its members, what it has of them, and how it enters several at once.
import type { SharedLease } from "../lease/shared-lease.ts";
import type { Request } from "../terms.ts";
import type { Holding, Taken } from "./holding.ts";
import type { ReentrantMember } from "./members.ts";
import type { PlacedRequest } from "./scope-wait.ts";
import { lengthen } from "./with-lock.ts";

/** A member in one call, which may say itself whether it is entered again. */
export interface Seat extends ReentrantMember {
  readonly key: string;
  /** What the call may enter of it. */
  readonly holding: Holding | null;
  /** What this call has of it, or will have: the scope's, or its own. */
  lease: SharedLease | null;
}

/** What a call has entered of what its scope holds. */
export interface Entered {
  /** The rest cannot be had: leaves all of these. */
  undo(): Promise<unknown>;
}

export const taking = ({ reentrant }: Seat, { place = null }: PlacedRequest): Taken => ({
  isOrdered: true,
  isReentrant: reentrant,
  place,
});

export const holdings = (seats: readonly Seat[]): Holding[] => seats.flatMap(({ holding }) => holding ?? []);

/**
 * Enters all of these once more, or none. RACE: all in the statement of the call. Behind an answer a later one may have been
 * unlocked, and would be entered in vain.
 */
export async function enterAll(held: readonly Holding[]): Promise<Entered> {
  const outcomes = await Promise.allSettled(held.map(({ shared }) => shared.enter()));
  const entered = held.filter((_, i) => outcomes[i]?.status === "fulfilled");
  const undo = () => Promise.allSettled(entered.map(({ shared }) => shared.leave(true)));
  for (const one of outcomes) {
    if (one.status === "fulfilled") continue;
    await undo();
    throw one.reason;
  }
  return { undo };
}

export const lengthenAll = (seats: readonly Seat[], request: Request): Promise<unknown> =>
  Promise.all(holdings(seats).map(({ shared }) => lengthen(shared, request)));
