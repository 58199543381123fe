// When the next caller of this process may have a lock that one caller has at a time. Protects the
// other processes from one that goes on by what it remembers: past its deadline, after its key was
// lost, or while they wait.
import { PASS_TIME } from "../../defaults.ts";
import type { Hold } from "../lease/hold.ts";
import { type Applicant, fits, isTooLong, type Next } from "./fits.ts";

/** What is known of a lock that this process has. */
export interface Possession {
  readonly hold: Hold;
  readonly state: "inside" | "idle" | "leaving" | "ended";
  /** Has it ever been without a caller? */
  readonly wasKept: boolean;
  /** Every later holder has a token above this one, a server's time in µs. 0: nobody has said so. */
  readonly tokensUntil: number;
}

/** Where it is. */
export interface Place {
  readonly kind: {
    /** Does Redis say of locks of this kind whether somebody waits? */
    readonly hasStays: boolean;
  };
  readonly context: {
    /** The grant window in ms. */
    readonly window: number;
    /** Could a message tell this process that somebody waits? */
    readonly inbox: { hears(name: string): boolean };
  };
}

/** May the next caller have it? Asked wherever a caller comes into a lock that is ours. */
export function next(mine: Possession, comer: Applicant, place: Place, mono: number, wall: number): Next {
  const { hold, state } = mine;
  const { window, inbox } = place.context;
  const { hasStays } = place.kind;
  const { terms } = comer;
  const left = hold.left(mono, wall);
  // This process stood still. RACE: a renewal would be answered "yours" until Redis ends the key,
  // and nobody could tell for how long that is true.
  if (left <= 0) return "no";
  // Nobody waits here, and somebody does elsewhere.
  if (state === "idle" && hold.wantedAt !== null) return "no";
  const passes = Math.min(hold.mayPass, comer.passes);
  if (!isWithinLimit(mine, passes, hasStays, mono)) {
    // Nobody is known to want it, only because nobody was told to say so.
    const isUntold = hasStays && passes > 0 && hold.wantedAt === null && hold.flag === 0;
    if (!isUntold || !inbox.hears(hold.name)) return "no";
    return isTooLong(hold, terms, window, mono) ? "no" : "ask";
  }
  if (isTooLong(hold, terms, window, mono)) return "no";
  if (hasStays && !(hold.isFresh(mono, wall) && hasToken(mine))) return "ask";
  // By another object of the same lock, which does without lingering: it is told by Redis that the
  // lock is held.
  if (mine.wasKept && terms.linger === 0) return "ask";
  return fits(hold, left, terms, window, false) === "enough" ? "now" : "ask";
}

/**
 * May it still, when the renewal was answered in time? What it did not bring, another one would not
 * bring either.
 */
export function isStillNext(mine: Possession, comer: Applicant, place: Place, mono: number): boolean {
  const { hold } = mine;
  const { hasStays } = place.kind;
  if (!hasStays) return true;
  const passes = Math.min(hold.mayPass, comer.passes);
  return hasToken(mine) && (hold.wantedAt === null || isWithinLimit(mine, passes, hasStays, mono));
}

/**
 * Others wait for so many callers of this process, and so long. Nobody is counted while no other
 * process wants the lock, and it would tell if one did. `passes`: of the caller that took the lock
 * from Redis, and of the one that would be next: the smaller number.
 */
function isWithinLimit(
  { hold, state }: Possession,
  passes: number,
  hasStays: boolean,
  mono: number,
): boolean {
  const isEndless = passes > 0 || state === "idle";
  if (hasStays && hold.flag > 0 && hold.wantedAt === null && isEndless) return true;
  return hold.turns < passes && mono - Math.max(hold.wantedAt ?? 0, hold.ownedAt) < PASS_TIME;
}

/**
 * Each caller has a token of its own: one that was reserved with the grant, or that is not above the
 * server's time by now.
 */
function hasToken({ hold, tokensUntil }: Possession): boolean {
  return hold.passes < hold.mayPass || hold.token + hold.passes + 1 <= tokensUntil;
}
