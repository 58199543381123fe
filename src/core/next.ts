// When the next caller of this process may have a lock that one caller has at a time. Protects the
// other processes from a process that continues from memory: past its deadline, after its key was
// lost, or while they wait.

import { PASS_TIME } from "../defaults.ts";
import { type Applicant, fits, isTooLong, type Next } from "./fits.ts";
import type { Hold } from "./lease/hold.ts";
import type { LockKind } from "./lock-kind.ts";

/** What is known of a lock that this process has. */
export interface Possession {
  /** Is no caller inside, while it stays here? */
  readonly isKept: boolean;
  /** Null: it was never so. */
  readonly keeping: object | null;
  /**
   * Every later holder has a token above this one, a server's time in µs. 0: Redis has not said so
   * yet.
   */
  readonly tokensUntil: number;
  readonly kind: {
    /** Does Redis say for locks of this kind whether another caller waits? */
    readonly hasStays: boolean;
  };
  readonly context: {
    /** The grant window in ms. */
    readonly window: number;
    /** Could a message notify this process that another caller waits? */
    readonly inbox: { hears(name: string): boolean };
  };
}

/** May the next caller have it? Called wherever a caller enters a lock that is ours. */
export function next(hold: Hold, mine: Possession, comer: Applicant, mono: number, wall: number): Next {
  const { isKept } = mine;
  const { window, inbox } = mine.context;
  const { hasStays } = mine.kind;
  const { terms } = comer;
  const left = hold.left(mono, wall);
  // This process was paused. RACE: Redis would answer a renewal "yours" until it ends the key, and
  // how long that remains true is unknown.
  if (left <= 0) return "no";
  // No caller waits here, and one waits elsewhere.
  if (isKept && hold.wantedAt !== null) return "no";
  const passes = Math.min(hold.mayPass, comer.passes);
  if (!isWithinLimit(hold, mine, passes, mono)) {
    // No waiter is known, but none would have notified this process: its hold's flag is 0.
    const isUntold = hasStays && passes > 0 && hold.wantedAt === null && hold.flag === 0;
    if (!isUntold || !inbox.hears(hold.name)) return "no";
    return isTooLong(hold, terms, window, mono) ? "no" : "ask";
  }
  if (isTooLong(hold, terms, window, mono)) return "no";
  // RACE: the lock was deleted, another client had it, and a late copy of our acquire has taken it
  // again: then Redis says "yours", and its time is above a token of that client. So none is asked
  // for while others want the lock. A hold that the queue has granted has reserved some. RACE: where
  // a renewal says that another caller waits, the limit above counts anew.
  if (!hasToken(hold, mine)) return hasStays && hold.wantedAt === null ? "ask" : "no";
  if (hasStays && !hold.isFresh(mono, wall)) return "ask";
  // The hold was cached, and this caller's lock has `linger: 0`: it enters only after Redis has
  // confirmed that the lock is held.
  if (mine.keeping && terms.linger === 0) return "ask";
  return fits(hold, left, terms, window, false) === "enough" ? "now" : "ask";
}

/**
 * May it still, after the renewal was answered in time? There is no second renewal: it would
 * achieve no more than the first.
 */
export function isStillNext(hold: Hold, mine: Possession, comer: Applicant, mono: number): boolean {
  if (!mine.kind.hasStays) return true;
  const passes = Math.min(hold.mayPass, comer.passes);
  return hasToken(hold, mine) && (hold.wantedAt === null || isWithinLimit(hold, mine, passes, mono));
}

/**
 * While others wait, only a limited number of callers of this process may follow, and only for a
 * limited time. There is no limit while no other process wants the lock, if it would be notified of
 * one. `passes`: the smaller limit of the caller that took the lock from Redis and of the next one.
 */
function isWithinLimit(hold: Hold, mine: Possession, passes: number, mono: number): boolean {
  const isEndless = passes > 0 || mine.isKept;
  if (mine.kind.hasStays && hold.flag > 0 && hold.wantedAt === null && isEndless) return true;
  return hold.turns < passes && mono - Math.max(hold.wantedAt ?? 0, hold.ownedAt) < PASS_TIME;
}

/**
 * How many tokens the command that has won a lock has reserved, of those that it asked for. `isAhead`:
 * the holder's own token is not the server's time at the grant. Redis reserves by the same rule: `own`
 * in lua/handoff/shared.lua.
 */
export function reserved(asked: number, isAhead: boolean, { tokensAhead = asked }: LockKind): number {
  return isAhead && tokensAhead < asked ? tokensAhead : asked;
}

/**
 * Each caller has its own token: one that was reserved with the grant, or one that the server's
 * time has reached by now.
 */
function hasToken(hold: Hold, { tokensUntil }: Possession): boolean {
  return hold.passes < Math.min(hold.reserved, hold.mayPass) || hold.token + hold.passes + 1 <= tokensUntil;
}
