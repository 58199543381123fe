// What is asked for the callers of one process that want permits: by one place in the queue of Redis, for all that it may serve.
import { PERMITS_MAX } from "../defaults.ts";
import type { Terms } from "../terms.ts";
import { suits } from "./handover.ts";
import type { Waiter } from "./waiter.ts";

/** What a hold is asked for. */
export interface Run {
  /** At least so many units, which is what the first caller wants, and up to so many: those of all that one hold may serve. */
  readonly units: number;
  readonly upTo: number;
  /** How many permits there are by their code; null: it does not say. */
  readonly permits: number | null;
  /** How many they are: for each a token is reserved. */
  readonly callers: number;
}

/** So many callers at the most: for each of them a token is reserved, whether or not it is served. */
const MOST = 256;

/** The first caller, and those behind it up to the first one that a hold for the first would not suit. */
export function runOf(first: Waiter, window: number): Run {
  const { units, of } = permitsOf(first.terms);
  const { lease } = first.terms;
  const most = of ?? PERMITS_MAX;
  let upTo = units;
  let callers = 1;
  for (let { next } = first; next && callers < MOST; { next } = next) {
    const wanted = permitsOf(next.terms);
    if (wanted.of !== of || upTo + wanted.units > most) break;
    if (suits({ ttl: lease }, lease, next.terms, window, false) !== "enough") break;
    upTo += wanted.units;
    callers++;
  }
  return { units, upTo, permits: of, callers };
}

/** Does a place in the queue ask for what this caller wants? */
export const isFor = ({ units, permits }: Run, { terms }: Waiter): boolean => {
  const wanted = permitsOf(terms);
  return wanted.units === units && wanted.of === permits;
};

const permitsOf = ({ permits }: Terms): { readonly units: number; readonly of: number | null } =>
  permits ?? ONE;

const ONE = { units: 1, of: null };
