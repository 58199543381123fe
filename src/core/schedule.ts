// When to retry, and when to re-check from the queue. Protects queue entries from ending before
// their client re-checks, grants from expiring unseen, and Redis from waiters that all re-check at
// once. All times are ms.

import {
  EXPIRY_JITTER,
  LEASE_TIME,
  PATIENCE_MIN,
  PATIENCE_PERIODS,
  RECHECK_SPREAD,
  RECHECKS,
  RETRY_MAX,
  RETRY_MIN,
  SPIN_MAX,
  SPIN_REST,
  SPIN_SPREAD,
  SUBSCRIBED_SOON,
  UNKNOWN_POSITION,
} from "../defaults.ts";
import { clocks } from "../util/clock.ts";
import { between, doubling } from "../util/random.ts";

/** The nominal re-check period at a position in the queue. */
function period(position: number | null): number {
  const at = position ?? UNKNOWN_POSITION;
  return RECHECKS.find((tier) => at < tier.before)?.period ?? PATIENCE_MIN;
}

/**
 * How long a queue entry may stay: three periods, and never so short that one late re-check loses
 * it.
 */
export function entryTtl(position: number | null): number {
  return Math.max(PATIENCE_MIN, PATIENCE_PERIODS * period(position));
}

/** The longest that a queue entry may stay after the last command that named it. */
export const LONGEST_ENTRY_TTL = entryTtl(Number.MAX_SAFE_INTEGER);

/**
 * How long to sleep before a re-check. By position if Redis keeps a queue; without one only the
 * holder's TTL can end the wait. `asked` is false for a hold that was just queued: the server gave
 * it the shortest time, so even the last of a long queue must re-check before that is over.
 */
export function sleep(ttl: number, position: number | null, asked: boolean): number {
  // A key without TTL (only other programs write one) ends by a message; at the latest, a re-check
  // after LEASE_TIME finds it gone.
  const expiry = Math.max(0, ttl === Number.POSITIVE_INFINITY ? LEASE_TIME : ttl) + between(1, EXPIRY_JITTER);
  if (position === null) return expiry;
  const spread = between(1 - RECHECK_SPREAD, 1 + RECHECK_SPREAD);
  // Only the first few re-check in case the holder crashed; if all did, a lock with short leases
  // would cause a storm.
  if (position < RECHECKS[0].before) return Math.min(expiry, RECHECKS[0].period * spread);
  return period(asked ? position : UNKNOWN_POSITION) * spread;
}

/**
 * How long a process stays away from a lock without messages after holding it for `held` ms. Whole
 * ms, rounded up or down at random: timers have no finer unit, and a hold shorter than 1 ms should
 * not always cost a whole one.
 */
export function cooldown(held: number): number {
  const rest = held * SPIN_REST * between(1 - SPIN_SPREAD, 1 + SPIN_SPREAD);
  return Math.floor(Math.min(SPIN_MAX, rest) + between(0, 1));
}

/**
 * When a caller that came at `since` and receives no messages yet tries again: 100, 200, 400 … ms
 * after it came, then every 2 000. Depends only on when it came, so that the first caller tries
 * first.
 */
export function nextTry(since: number): number {
  const waited = clocks.mono.now() - since;
  let at = SUBSCRIBED_SOON;
  while (at <= waited) at += Math.min(at, RETRY_MAX);
  return since + at;
}

/** After a failure: 50, 100, 200 … 2 000 ms, spread. */
export function backOff(failures: number): number {
  return doubling(failures, RETRY_MIN, RETRY_MAX, RECHECK_SPREAD);
}
