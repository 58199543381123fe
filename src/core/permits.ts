// Which callers may have permits that this process has, and how many are requested for them: with
// one place in Redis's queue for all callers that one hold may serve. Protects the other processes
// from permits that are handed on here without limit, and callers from units that no caller has.

import { PASS_TIME, PERMITS_MAX } from "../defaults.ts";
import { type Applicant, fits, isTooLong } from "./fits.ts";
import type { Hold } from "./lease/hold.ts";
import type { Terms, WantedPermits } from "./lease/terms.ts";
import type { Run } from "./lock-kind.ts";

/** What is known of permits that this process has. */
export interface Permits {
  readonly hold: Hold;
  /** The request that it was made for. */
  readonly run: Run;
  /** Unused units. */
  readonly free: number;
  /** Has it had a user? The first user has the token of the grant. */
  readonly wasUsed: boolean;
}

/**
 * Has it enough units and a suitable lease for these terms? The calling code takes care of the
 * order.
 */
export function serves(
  { hold, run, free, wasUsed }: Permits,
  terms: Terms,
  window: number,
  mono: number,
  wall: number,
): boolean {
  if (hold.isRevoked || !suits(run, free, terms)) return false;
  // Each user has its own token, one of those reserved with the grant.
  if (wasUsed && hold.passes >= run.callers - 1 + hold.mayPass) return false;
  const left = hold.left(mono, wall);
  if (isTooLong(hold, terms, window, mono)) return false;
  return fits(hold, left, terms, window, false) === "enough";
}

/**
 * The same for units that another caller of this process has left. After a number of local
 * hand-offs, or some time, the permits go to other processes.
 */
export function passes(
  mine: Permits,
  { terms, passes }: Applicant,
  window: number,
  mono: number,
  wall: number,
): boolean {
  const { hold } = mine;
  const isInTime = mono - hold.ownedAt < PASS_TIME;
  return isInTime && hold.turns < Math.min(hold.mayPass, passes) && serves(mine, terms, window, mono, wall);
}

/** A token is reserved for each of them, whether or not it is served. */
const MAX_CALLERS_PER_RUN = 256;

/** A caller in line. */
interface Wanting {
  readonly terms: Terms;
  readonly next: Wanting | null;
}

/**
 * The first caller, and those after it up to the first one that the first caller's hold would not
 * serve.
 */
export function runFrom(first: Wanting, window: number): Run {
  const { units, of } = permitsOf(first.terms);
  const { lease } = first.terms;
  const most = of ?? PERMITS_MAX;
  let upTo = units;
  let callers = 1;
  for (let { next } = first; next && callers < MAX_CALLERS_PER_RUN; { next } = next) {
    const wanted = permitsOf(next.terms);
    if (wanted.of !== of || upTo + wanted.units > most) break;
    if (fits({ ttl: lease }, lease, next.terms, window, false) !== "enough") break;
    upTo += wanted.units;
    callers++;
  }
  return { units, upTo, permits: of, callers };
}

/** Was a hold requested for what these terms want? */
export function isFor({ units, permits }: Run, terms: Terms): boolean {
  const wanted = permitsOf(terms);
  return wanted.units === units && wanted.of === permits;
}

/**
 * Are so many units of it enough for these terms? Units granted out of 10 permits must not be used
 * by a caller whose code says that there are 20.
 */
export function suits({ permits }: Run, units: number, terms: Terms): boolean {
  const { units: wanted, of } = permitsOf(terms);
  return wanted <= units && (of === null || of === permits);
}

/** How many permits a caller wants. */
export const unitsOf = ({ permits }: Terms): number => permits?.units ?? 1;

const permitsOf = ({ permits }: Terms): WantedPermits => permits ?? ONE;

/** Of as many as are stored. */
export const ONE: WantedPermits = { units: 1, of: null };
