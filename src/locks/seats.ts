// A multi-lock in one call: what the call may enter of its members, what it has of them, and how it enters several at once.
import type { SharedLease } from "../lease/shared-lease.ts";
import type { Request } from "../terms.ts";
import type { PlacedRequest } from "./beside.ts";
import type { Holding, Taken } from "./holding.ts";
import type { ReentrantMember } from "./members.ts";
import { lengthen } from "./with-lock.ts";

/** A member in one call, which may say itself whether it is entered again. */
export interface Seat extends ReentrantMember {
  readonly key: string;
  /** What the call may enter of it. */
  readonly holding: Holding | null;
  /** What this call has of it, or will have: the scope's, or its own. */
  lease: SharedLease | null;
}

/**
 * Enters what the scope holds, and notes how each is left again, for when the rest cannot be had. `mayWait`: false: rejects with
 * OVERTAKEN where it would have to wait for a turn.
 */
export type Enter = (held: readonly Holding[], undo: (() => unknown)[], mayWait: boolean) => Promise<void>;

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
export const enterAll: Enter = async (held, undo) => {
  const entering = held.map(async ({ shared }) => {
    await shared.enter();
    undo.push(() => shared.leave(true));
  });
  for (const entered of await Promise.allSettled(entering))
    if (entered.status === "rejected") throw entered.reason;
};

export const lengthenAll = (seats: readonly Seat[], request: Request): Promise<unknown> =>
  Promise.all(holdings(seats).map(({ shared }) => lengthen(shared, request)));
